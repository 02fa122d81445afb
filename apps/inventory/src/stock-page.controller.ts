import { Controller, Get, Header } from '@nestjs/common';
import { renderStockPage } from './stock-page.js';
import type { StockItem } from './stock-item.entity.js';
import { StockService } from './stock.service.js';

/** Shows the stock, to people and programs. */
@Controller()
export class StockPageController {
  constructor(private readonly stock: StockService) {}

  @Get()
  @Header('Content-Type', 'text/html; charset=utf-8')
  @Header('Content-Security-Policy', "default-src 'none'; style-src 'unsafe-inline'")
  async page(): Promise<string> {
    return renderStockPage(await this.stock.list());
  }

  @Get('stock')
  list(): Promise<StockItem[]> {
    return this.stock.list();
  }
}
