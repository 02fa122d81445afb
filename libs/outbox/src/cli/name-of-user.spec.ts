import { expect, it, vi } from 'vitest';
import { nameOfUser } from './name-of-user';

vi.mock('node:os', async (original) => ({
  ...(await original<object>()),
  userInfo: () => {
    throw new Error('uv_os_get_passwd returned ENOENT');
  },
}));

it('wants to be told who acts where the user has no name', () => {
  expect(nameOfUser).toThrow(expect.objectContaining({ exitCode: 2, message: expect.stringContaining('--by <name>') }));
});
