"""Pages of documentation, in the layout of the vendor's: headings, tables of plans and parameters, code with JSON."""

from __future__ import annotations

PAGE = """<!doctype html><html lang="en"><head><title>CHART-IMG</title><meta charset="utf-8">
<style>.a>b{color:red}</style><script>var plans = "<table><tr><td>BASIC</td></tr></table>";</script></head>
<body class="index"><a href="#" id="nav-button"><span>NAV</span></a>
<h1 id='introduction'>Introduction 👋</h1><p>Welcome &amp; hello.</p>
<h2 id='recent'>Recent Changes</h2><ul><li>Added intervals <code>6h</code> and <code>12h</code>.</li></ul>
<h1 id='limits'>Request Limit</h1><h2>Rate Limit</h2>
<table><thead><tr><th>Plan</th><th>req/sec</th><th>Burst</th><th>Daily max</th></tr></thead><tbody>
<tr><td>BASIC</td><td>2</td><td>3</td><td>60</td></tr>
<tr><td>PRO</td><td>10</td><td>15</td><td>500</td></tr>
<tr><td>MEGA</td><td>15</td><td>25</td><td>1,000</td></tr>
<tr><td>ULTRA</td><td>35</td><td>50</td><td>3,000</td></tr>
<tr><td>ENTERPRISE</td><td>35+</td><td>50+</td><td>5,000+</td></tr></tbody></table>
<h2>Resolution Limit</h2>
<table><tr><th>Plan<th>Max width<th>Max height<th>Watermark
<tr><td>BASIC<td>820<td>620<td>Yes<tr><td>PRO<td>1920<td>1080<td>No<tr><td>MEGA<td>1920<td>1600<td>No
<tr><td>ULTRA<td>2048<td>1920<td>No<tr><td>ENTERPRISE<td>2048<td>1920<td>No</table>
<h2>Storage Limit</h2><table><tr><th>Plan</th><th>Expire days</th></tr><tr><td>BASIC</td><td>14</td></tr></table>
<h2>Parameter Limit</h2><table><tr><th>Plan</th><th>Max studies[] + drawings[]</th></tr>
<tr><td>BASIC</td><td>4</td></tr><tr><td>PRO</td><td>5</td></tr><tr><td>MEGA</td><td>10</td></tr>
<tr><td>ULTRA</td><td>25</td></tr><tr><td>ENTERPRISE</td><td>50</td></tr></table>
<h1>TradingView Snapshot v1</h1>
<table><tr><th>Parameter</th><th>Description</th></tr><tr><td>interval</td><td>1m, 5m, 1h, 1D</td></tr></table>
<h1>TradingView Snapshot v2</h1><h2>Advanced Chart</h2>
<div class="highlight"><pre class="highlight json"><code>{
  <span class="nl">"symbol"</span>: <span class="s2">"BINANCE:ETHUSDT"</span>, "interval": "4h",
  "studies": [{"name": "Volume", "forceOverlay": true}, {"name": "MACD", "input": {"in_0": 13, "in_3": "hl2"}}]
}</code></pre></div>
<pre><code>curl -X POST https://api.example.com/v2 -d '{"symbol": "NASDAQ:AAPL", "range": "6M"}' -o chart.png</code></pre>
<table><tr><th>Parameter</th><th>Type</th><th>Default</th><th>Description</th></tr>
<tr><td><code>interval</code></td><td>string</td><td><code>1D</code></td>
<td>Resolution: <code>1m</code> <code>3m</code> <code>5m</code> <code>1h</code>
<code>10h</code> <code>1D</code> <code>1W</code></td></tr>
<tr><td><code>range</code></td><td>string</td><td></td><td>one of 1D, 5D, 1M, ALL or YTD, or an object</td></tr>
<tr><td>theme</td><td>string</td><td><code>light</code></td><td>
<code>light</code>, <code>dark</code>, <code>sepia</code></td></tr>
</table>
<h3>Style</h3><ul><li><code>bar</code></li><li><code>candle</code></li><li><code>renko</code></li></ul>
<h2>Studies</h2>
<h3>Bollinger Bands</h3>
<pre><code>{"name": "Bollinger Bands", "input": {"in_0": 25, "in_2": 500}, "override": {}}</code></pre>
<h3>Relative Strength Index</h3><p>text</p>
<h3>Brand New Study</h3>
<pre><code>{"name": "Brand New Study", "input": {"in_0": 7, "smooth": true, "mode": "fast"}}</code></pre>
<h2>Drawings</h2><pre><code>{"name": "Horizontal Line", "input": {"price": 5}, "override": {}}</code></pre>
</body></html>"""

PLANS_ACROSS = """<h1>Plans</h1><table><tr><th></th><th>Basic</th><th>Pro</th></tr>
<tr><td>Requests per second</td><td>2</td><td>11</td></tr><tr><td>Daily max</td><td>51 requests</td><td>501</td></tr>
<tr><td>Resolution</td><td>801 × 601</td><td>1921x1081</td></tr></table>"""

USELESS = {
    "empty": "",
    "error page": "<html><body><h1>502 Bad Gateway</h1><p>nginx</p></body></html>",
    "captive portal": "<html><body><form><h2>The hotel</h2><table><tr><td>Room</td><td>BASIC</td></tr></table></form>",
    "JavaScript shell": '<!doctype html><div id="root"></div><script src="/main.js"></script><noscript>Enable it</noscript>',
    "script only": f"<script>{PAGE.replace('</script>', '')}</script>",
    "JSON": '{"message": "not found"}',
}
