export * from './dist/platformatic';
