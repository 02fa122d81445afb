export { openTelemetryMetrics, type OpenTelemetryMetricsOptions } from './observe/open-telemetry/open-telemetry-metrics';
