import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Outbox, TransactionRunner } from 'nestjs-transactional-outbox';
import { prometheusMetrics } from 'nestjs-transactional-outbox/prometheus';
import { Registry } from 'prom-client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { INSTRUMENTS, prometheusName } from '../../libs/outbox/src/observe/metrics/instruments';
import { tableNames } from '../../libs/outbox/src/store/tables';
import { until } from '../consume/until';
import { promtool } from '../services/index.mjs';
import { startApp, type TestApp } from '../setup/app';
import { Scrape } from './scrape';

const path = (file: string): string => fileURLToPath(new URL(`../../${file}`, import.meta.url));
const read = (file: string): string => readFileSync(path(file), 'utf8');
const metricsIn = (text: string): string[] => [...new Set(text.match(/\boutbox_[a-z_]+/g))].toSorted();

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly datasource?: { readonly uid: string };
  readonly targets?: readonly { readonly expr: string; readonly refId: string }[];
}

const dashboard = JSON.parse(read('dashboards/outbox.json')) as { panels: Panel[]; templating: { list: { name: string; query: unknown }[] } };
const expressions = dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));

describe('what watches', () => {
  let app: TestApp;
  let scrape: Scrape;
  const registry = new Registry();

  beforeAll(async () => {
    app = await startApp('sqlite', { outbox: { metrics: prometheusMetrics({ registry }), relay: {} } });
    await app.app.get(TransactionRunner).run(async () => app.app.get(Outbox).emitRaw({ topic: 'orders', type: 'made', payload: '{}' }));
    await until('the message is published', async () => (scrape = await Scrape.of(registry)).sum('outbox_messages_published_total') === 1);
  });
  afterAll(() => app.close());

  it('scrapes all that is defined', () => {
    for (const instrument of Object.values(INSTRUMENTS)) expect(scrape.names).toContain(prometheusName(instrument));
  });

  it.each(['dashboards/outbox.json', 'dashboards/alerts.yml', 'docs/metrics.md', 'docs/operating.md'])('%s names metrics that exist', (file) => {
    const text = file.endsWith('.json') ? [...expressions, JSON.stringify(dashboard.templating)].join('\n') : read(file);
    const tables = Object.values(tableNames({}));
    const unknown = metricsIn(text).filter((name) => !scrape.names.has(name) && !tables.includes(name));
    expect(unknown).toEqual([]);
  });

  it('the dashboard shows every metric, and docs/metrics.md explains each', () => {
    const shown = metricsIn(expressions.join('\n')).map((name) => name.replace(/_(bucket|sum|count)$/, ''));
    const defined = Object.values(INSTRUMENTS).map(prometheusName).toSorted();
    expect(defined.filter((name) => !shown.includes(name))).toEqual([]);
    const rows = [...read('docs/metrics.md').matchAll(/^\| `(outbox_\w+)` \| (\w+) \| ([^|]*) \| ([^|]*) \|$/gm)];
    expect(rows.map(([, name, kind, labels, help]) => ({ name, kind, labels, help }))).toEqual(
      Object.values(INSTRUMENTS).map((instrument) => ({
        name: prometheusName(instrument),
        kind: instrument.kind === 'total' ? 'counter' : instrument.kind,
        labels: instrument.labels.slice(1).map((label) => `\`${label}\``).join(', '),
        help: instrument.help,
      })),
    );
  });

  it('the dashboard is sound: ids of their own, no overlap, each query on the chosen Prometheus', () => {
    const { panels } = dashboard;
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    const taken = new Set<string>();
    for (const { title, type, gridPos, datasource, targets = [] } of panels) {
      expect(title).not.toBe('');
      expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24);
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
          expect(taken, `${title} overlaps`).not.toContain(`${x},${y}`);
          taken.add(`${x},${y}`);
        }
      }
      if (type === 'row') continue;
      expect(datasource?.uid).toBe('${datasource}');
      expect(targets.length).toBeGreaterThan(0);
      expect(new Set(targets.map(({ refId }) => refId)).size).toBe(targets.length);
      for (const { expr } of targets) expect(expr).toContain('{data_source=~"$data_source"}'.slice(0, -1));
    }
    expect(dashboard.templating.list.map(({ name }) => name)).toEqual(['datasource', 'data_source']);
  });

  it('every alert has its row in the runbook', () => {
    const alerts = [...read('dashboards/alerts.yml').matchAll(/alert: (\w+)/g)].map(([, name]) => name);
    const rows = [...read('docs/operating.md').matchAll(/^\| [^|]+ \| `(Outbox[A-Z]\w+)` \|/gm)].map(([, name]) => name);
    expect(rows.toSorted()).toEqual(alerts.toSorted());
  });

  it('promtool takes rules, their tests, queries and what is scraped', async ({ skip }) => {
    const command = await promtool((line) => process.stderr.write(`promtool: ${line}\n`));
    if (command === undefined) {
      if (process.env['CI']) throw new Error('promtool is not installed, and there is no apt-get to take it from.');
      skip('promtool is not installed, and there is no apt-get to take it from.');
      return;
    }
    const run = (args: string[], input = ''): void => {
      const { status, stdout, stderr } = spawnSync(command, args, { input, encoding: 'utf8' });
      expect({ status, output: status === 0 ? '' : stdout + stderr }).toEqual({ status: 0, output: '' });
    };
    run(['check', 'rules', '--lint-fatal', path('dashboards/alerts.yml')]);
    run(['test', 'rules', path('dashboards/alerts.test.yml')]);
    run(['check', 'metrics'], scrape.text);
    // A dashboard's queries, as rules, once Grafana has filled in its own words.
    const filled = expressions.map((expr) => expr.replaceAll('$__rate_interval', '1m').replaceAll('$data_source', '.*'));
    const rules = filled.map((expr, index) => `      - record: panel_${index}\n        expr: ${JSON.stringify(expr)}`).join('\n');
    const folder = mkdtempSync(join(tmpdir(), 'outbox-rules-'));
    try {
      writeFileSync(join(folder, 'rules.yml'), `groups:\n  - name: dashboard\n    rules:\n${rules}\n`);
      run(['check', 'rules', join(folder, 'rules.yml')]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  }, 300_000);
});
