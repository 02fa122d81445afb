export { openTelemetryMetrics, type OpenTelemetryMetricsOptions } from './observe/open-telemetry/open-telemetry-metrics';
export { openTelemetryTracing, type OpenTelemetryTracingOptions } from './observe/open-telemetry/open-telemetry-tracing';
