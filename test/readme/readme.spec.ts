import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { getRepositoryToken } from '@nestjs/typeorm';
import type { Repository } from 'typeorm';
import { describe, expect, it } from 'vitest';
import { checksOf } from '../../libs/outbox/src/operate/doctor/checks';
import { CHECK_IDS } from '../../libs/outbox/src/operate/doctor/finding';
import { bootstrap, broker, OrdersService, Stock } from './example';

const root = fileURLToPath(new URL('../../', import.meta.url));
const read = (file: string): string => readFileSync(join(root, file), 'utf8');

describe('README', () => {
  it.each(['example', 'production'])('shows %s.ts as it is compiled here', (name) => {
    expect(read('README.md')).toContain(`\`\`\`ts\n${read(`test/readme/${name}.ts`)}\`\`\``);
  });

  it('shows an example that does what it says', async () => {
    const app = await bootstrap();
    try {
      const stock = app.get<Repository<Stock>>(getRepositoryToken(Stock));
      await stock.insert({ product: 'chair', reserved: 0 });
      await app.get(OrdersService).place(2);
      await expect.poll(() => broker.records('orders')).toHaveLength(1);
      await broker.idle();
      expect(await stock.findOneBy({ product: 'chair' })).toEqual({ product: 'chair', reserved: 2 });
      broker.redeliver('orders', () => true);
      await broker.idle();
      expect(await stock.findOneBy({ product: 'chair' })).toEqual({ product: 'chair', reserved: 2 });
    } finally {
      await app.close();
    }
  });
});

describe('docs/own-publisher.md', () => {
  it.each(['own-publisher', 'own-publisher.spec'])('shows %s.ts as it is run here', (name) => {
    expect(read('docs/own-publisher.md')).toContain(`\`\`\`ts\n${read(`test/readme/${name}.ts`)}\`\`\``);
  });
});

describe('the documents', () => {
  const documents = ['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', ...readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.md'))
    .map((file) => `docs/${file}`)];

  it.each(documents)('%s links to files that exist', (document) => {
    const links = [...read(document).matchAll(/\]\((?!https?:|#)([^)#]+)/g)].map(([, target]) => target ?? '');
    const broken = links.filter((target) => !existsSync(join(root, dirname(document), target)));
    expect(broken).toEqual([]);
  });

  it('list every check of the doctor, and no other', () => {
    const listed = [...read('docs/operating.md').matchAll(/^\| `([a-z-]+\.[a-z-]+)` \|/gm)].map(([, id]) => id);
    expect(listed).toEqual(CHECK_IDS);
    const made = (['mysql', 'mariadb', 'postgres', 'sqlite'] as const).flatMap((name) => checksOf(name).map(({ id }) => id));
    expect(CHECK_IDS.filter((id) => !/^(topics|brokers)\./.test(id)).toSorted()).toEqual([...new Set(made)].toSorted());
  });

  it('list every error code, and no other', () => {
    const codes = (text: string): string[] => [...new Set(text.match(/OUTBOX_[A-Z]+(?:_[A-Z]+)+/g))].toSorted();
    const declared = codes(read('libs/outbox/src/errors.ts'));
    const listed = codes(read('docs/errors.md').split('\n').filter((line) => line.startsWith('| `OUTBOX_')).join('\n'));
    expect(listed).toEqual(declared);
  });
});
