export * from './dist/redis';
