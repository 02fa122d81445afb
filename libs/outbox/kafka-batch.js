module.exports = require('./dist/kafka-batch.js');
