module.exports = require('./dist/kafkajs.js');
