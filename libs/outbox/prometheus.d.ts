export * from './dist/prometheus';
