/** Header names that the library writes itself. A message that has one of its own is refused when it is emitted. */
export const RESERVED_HEADERS: ReadonlySet<string> = new Set([
  'id',
  'event_type',
  'aggregate_type',
  'tenant_id',
  'traceparent',
  'correlation_id',
  'causation_id',
]);
