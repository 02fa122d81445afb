/**
 * What an error says, whatever was thrown: nothing keeps a handler from throwing `undefined`, the plain object that a
 * client of Nest rejects with, or something that cannot be made a text.
 */
export function reasonOf(error: unknown): string {
  try {
    return typeof error === 'object' && error !== null ? ofObject(error) : String(error);
  } catch {
    return typeof error;
  }
}

function ofObject(error: object): string {
  const message: unknown = 'message' in error ? error.message : undefined;
  if (typeof message === 'string') return message;
  return JSON.stringify(message ?? error) ?? typeof error;
}

/** With its name, for a log. */
export function namedReasonOf(error: unknown): string {
  return error instanceof Error && typeof error.name === 'string' ? `${error.name}: ${reasonOf(error)}` : reasonOf(error);
}
