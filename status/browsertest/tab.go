package browsertest

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"
)

// Tab is an open page. Its methods end the test where the browser refuses or does
// not answer.
type Tab struct {
	t       *testing.T
	b       *Browser
	session string
	loaded  chan struct{}

	mu     sync.Mutex
	faults []string // what the console complains of
}

// Open shows an address in a tab of its own, in the wanted width (in pixels) and
// colour scheme ("light" or "dark"). The tab is closed with the test.
func (b *Browser) Open(t *testing.T, url string, width int, scheme string) *Tab {
	t.Helper()
	p := &Tab{t: t, b: b, loaded: make(chan struct{}, 16)}
	var made struct{ TargetID string }
	p.into(&made, "", "Target.createTarget", map[string]any{"url": "about:blank"})
	var attached struct{ SessionID string }
	p.into(&attached, "", "Target.attachToTarget", map[string]any{"targetId": made.TargetID, "flatten": true})
	p.session = attached.SessionID
	b.mu.Lock()
	b.heard[p.session] = p.hear
	b.mu.Unlock()
	t.Cleanup(func() { _, _ = b.call("", "Target.closeTarget", map[string]any{"targetId": made.TargetID}) })
	for _, domain := range []string{"Page", "Runtime", "Log"} {
		p.do(domain+".enable", nil)
	}
	p.do("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false})
	p.do("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{
		{"name": "prefers-color-scheme", "value": scheme}, {"name": "prefers-reduced-motion", "value": "reduce"},
	}})
	p.Go(url)
	return p
}

func (p *Tab) hear(method string, params json.RawMessage) {
	var m struct {
		Type  string
		Args  []struct{ Value any }
		Entry struct{ Level, Text, URL string }
	}
	_ = json.Unmarshal(params, &m) // an event of another shape is none of these
	fault := ""
	switch {
	case method == "Page.loadEventFired":
		select {
		case p.loaded <- struct{}{}:
		default:
		}
	case method == "Runtime.exceptionThrown":
		fault = string(params)
	case method == "Runtime.consoleAPICalled" && (m.Type == "error" || m.Type == "warning"):
		fault = fmt.Sprint(m.Args)
	case method == "Log.entryAdded" && (m.Entry.Level == "error" || m.Entry.Level == "warning"):
		fault = m.Entry.Text + " " + m.Entry.URL
	}
	if fault != "" {
		p.mu.Lock()
		p.faults = append(p.faults, fault)
		p.mu.Unlock()
	}
}

func (p *Tab) do(method string, params any) {
	p.t.Helper()
	if _, err := p.b.call(p.session, method, params); err != nil {
		p.t.Fatal(err)
	}
}

func (p *Tab) into(v any, session, method string, params any) {
	p.t.Helper()
	out, err := p.b.call(session, method, params)
	if err == nil {
		err = json.Unmarshal(out, v)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// Go shows an address and waits until it is loaded.
func (p *Tab) Go(url string) {
	p.t.Helper()
	for len(p.loaded) > 0 { // what links and forms have loaded before
		<-p.loaded
	}
	var gone struct{ ErrorText string }
	p.into(&gone, p.session, "Page.navigate", map[string]any{"url": url})
	if gone.ErrorText != "" {
		p.t.Fatalf("%s: %s", url, gone.ErrorText)
	}
	p.AwaitLoad()
}

// AwaitLoad waits until a page is loaded that a link or a form leads to.
func (p *Tab) AwaitLoad() {
	p.t.Helper()
	select {
	case <-p.loaded:
	case <-time.After(patience):
		p.t.Fatal("the page did not load")
	}
}

// Scripts says whether pages that are loaded from now on may run scripts. A tab
// begins with true. Eval and what rests on it need true.
func (p *Tab) Scripts(may bool) {
	p.t.Helper()
	p.do("Emulation.setScriptExecutionDisabled", map[string]any{"value": !may})
}

// Eval runs JavaScript in the page and reads its value as JSON, of a promise what it
// gives. A nil into drops the value.
func (p *Tab) Eval(expression string, into any) {
	p.t.Helper()
	if err := p.try(expression, into); err != nil {
		p.t.Fatal(err)
	}
}

func (p *Tab) try(expression string, into any) error {
	raw, err := p.b.call(p.session, "Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true})
	if err != nil {
		return err
	}
	var out struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		return err
	}
	if e := out.ExceptionDetails; e != nil {
		return fmt.Errorf("%s: %s %s", expression, e.Text, e.Exception.Description)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(out.Result.Value, into); err != nil {
		return fmt.Errorf("%s gives %s: %w", expression, out.Result.Value, err)
	}
	return nil
}

// Text is the value of an expression in the page as JavaScript writes it.
func (p *Tab) Text(expression string) (out string) {
	p.t.Helper()
	p.Eval("String("+expression+")", &out)
	return out
}

// holds is whether an expression is true. Between two pages, none is.
func (p *Tab) holds(expression string) (ok bool) {
	return p.try("Boolean("+expression+")", &ok) == nil && ok
}

// Await waits until an expression is true in a page that is loaded, be it this one or
// one that a link or a form leads to.
func (p *Tab) Await(expression string) {
	p.t.Helper()
	for end := time.Now().Add(patience); !p.holds("document.readyState === 'complete' && (" + expression + ")"); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			p.fail("did not become true: " + expression)
		}
	}
}

// Shows waits until the page has a text.
func (p *Tab) Shows(text string) {
	p.t.Helper()
	p.Await("document.body.innerText.includes(" + quoted(text) + ")")
}

// TabTo goes on with the key Tab until what a CSS selector names has the focus.
func (p *Tab) TabTo(selector string) {
	p.t.Helper()
	for range 200 {
		if p.holds("document.activeElement !== null && document.activeElement.matches(" + quoted(selector) + ")") {
			return
		}
		p.Press("Tab")
	}
	p.fail("the keyboard does not lead to " + selector)
}

// fail ends the test with a reason and what the page says.
func (p *Tab) fail(why string) {
	p.t.Helper()
	var page string
	if err := p.try("location.href + ' says: ' + document.body.innerText.slice(0, 2000)", &page); err != nil {
		page = err.Error()
	}
	p.t.Fatalf("%s\n%s", why, page)
}

// quoted is a text as JavaScript writes it.
func quoted(text string) string {
	raw, _ := json.Marshal(text) // a string always has a form in JSON
	return string(raw)
}

// keys are those that tests press. Names and numbers are those of the protocol's
// Input.dispatchKeyEvent; text is what a key writes.
var keys = map[string]struct {
	code, text string
	number     int
}{
	"Tab": {"Tab", "", 9}, "Enter": {"Enter", "\r", 13}, "ArrowDown": {"ArrowDown", "", 40},
	" ": {"Space", " ", 32}, "/": {"Slash", "/", 191},
}

// Press presses a key: Tab, Enter, ArrowDown, a space or a slash.
func (p *Tab) Press(key string) {
	p.t.Helper()
	k, ok := keys[key]
	if !ok {
		p.t.Fatalf("there is no key %q: add it to keys", key)
	}
	event := map[string]any{"type": "keyDown", "key": key, "code": k.code, "windowsVirtualKeyCode": k.number}
	if k.text != "" {
		event["text"] = k.text
	}
	p.do("Input.dispatchKeyEvent", event)
	event["type"] = "keyUp"
	delete(event, "text")
	p.do("Input.dispatchKeyEvent", event)
}

// Write writes into what has the focus.
func (p *Tab) Write(text string) {
	p.t.Helper()
	p.do("Input.insertText", map[string]any{"text": text})
}

// Complaints are the errors and warnings of the console since the tab was opened, on
// all of its pages. A response of 400 or more is one of them.
func (p *Tab) Complaints() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.faults)
}

// Picture is the page as PNG, as high as it is but not higher than most (in pixels).
func (p *Tab) Picture(most int) []byte {
	p.t.Helper()
	var size struct {
		CSSContentSize struct{ Width, Height float64 }
	}
	p.into(&size, p.session, "Page.getLayoutMetrics", nil)
	var shot struct{ Data []byte }
	p.into(&shot, p.session, "Page.captureScreenshot", map[string]any{
		"format": "png", "captureBeyondViewport": true, "optimizeForSpeed": false,
		"clip": map[string]any{"x": 0, "y": 0, "width": size.CSSContentSize.Width, "height": min(size.CSSContentSize.Height, float64(most)), "scale": 1},
	})
	return shot.Data
}
