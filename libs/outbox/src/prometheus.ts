export { prometheusMetrics, type PrometheusMetricsOptions } from './observe/prometheus/prometheus-metrics';
