/** Header names of a CloudEvent in binary mode, and the header of the outbox's own format that says the same. */
export const CLOUD_EVENT_HEADERS = {
  ce_specversion: null,
  ce_id: 'id',
  ce_source: null,
  ce_type: 'event_type',
  ce_time: null,
  ce_subject: null,
  ce_aggregatetype: 'aggregate_type',
  ce_tenantid: 'tenant_id',
  ce_correlationid: 'correlation_id',
  ce_causationid: 'causation_id',
  ce_traceparent: 'traceparent',
  ce_tracestate: 'tracestate',
} as const;
