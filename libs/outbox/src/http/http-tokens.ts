/** Where the controllers of one module find its settings and its operator. */
export const HTTP_SETTINGS = Symbol('OutboxHttpModule settings');
export const HTTP_ADMIN = Symbol('OutboxHttpModule admin');
export const HTTP_DEAD_LETTERS = Symbol('OutboxHttpModule dead letters');
export const HTTP_KAFKA = Symbol('OutboxHttpModule kafka');
