module.exports = require('./dist/http.js');
