module.exports = require('./dist/redis.js');
