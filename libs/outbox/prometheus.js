module.exports = require('./dist/prometheus.js');
