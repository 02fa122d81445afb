module.exports = require('./dist/publisher-acceptance.js');
