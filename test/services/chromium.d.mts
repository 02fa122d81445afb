/** How to start a browser: one that OUTBOX_CHROMIUM names, one that is installed, or Debian's. As Playwright's `launch` takes it. */
export function chromium(): Promise<{ executablePath: string; env: Record<string, string> }>;
