export * from './dist/http';
