export * from './dist/opentelemetry';
