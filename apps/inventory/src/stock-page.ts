import type { StockItem } from './stock-item.entity.js';

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

export function renderStockPage(items: readonly StockItem[]): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Stock</title>
<style>
  body { font: 1rem/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 40rem; padding: 0 1rem; color-scheme: light dark }
  table { border-collapse: collapse; width: 100% }
  th, td { padding: .3rem .6rem; text-align: end; border-bottom: 1px solid #8886 }
  th:first-child, td:first-child { text-align: start }
</style>
<h1>Stock</h1>
<table>
<thead><tr><th scope="col">Product</th><th scope="col">Available</th><th scope="col">Reserved</th></tr></thead>
<tbody>
${items.map(renderRow).join('\n')}
</tbody>
</table>
</html>
`;
}

function renderRow({ productId, available, reserved }: StockItem): string {
  return `<tr><td>${escapeHtml(productId)}</td><td>${available}</td><td>${reserved}</td></tr>`;
}

/** Product names come from outside. */
function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? character);
}
