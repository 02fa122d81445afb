module.exports = require('./dist/in-memory.js');
