import { get } from './api.js';
import { prepareDialogs } from './dialogs.js';
import { byId } from './dom.js';
import { startMessages } from './messages.js';
import { startOverview } from './overview.js';

prepareDialogs();
const refresh = startOverview();
const me = await get('me').catch(() => ({ by: '', canReadContent: false }));
byId('me').textContent = me.by;
startMessages(me, refresh);
