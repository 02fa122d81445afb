import { userInfo } from 'node:os';
import { Failure } from './failure';

/** @throws Failure where the user of this process has no name, as with a number given to a container */
export function nameOfUser(): string {
  try {
    return userInfo().username;
  } catch (cause) {
    throw new Failure('The user of this process has no name here: say who acts with --by <name>.', 2, { cause });
  }
}
