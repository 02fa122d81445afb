export * from './dist/in-memory';
