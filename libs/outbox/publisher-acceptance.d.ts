export * from './dist/publisher-acceptance';
