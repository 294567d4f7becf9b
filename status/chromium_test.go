package status

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"
)

// browserPatience bounds what a browser is waited for. A busy machine takes long, and no
// test says how long.
const browserPatience = 90 * time.Second

// browser is a headless Chromium that is driven over a pipe by the DevTools
// protocol.
type browser struct {
	out io.Writer

	mu      sync.Mutex
	last    int
	waiting map[int]chan answer
	heard   map[string]func(method string, params json.RawMessage) // by session
	gone    error
}

type answer struct {
	result json.RawMessage
	err    error
}

// startBrowser starts a browser for a test and those below it, or skips the test
// where there is none.
func startBrowser(t *testing.T) *browser {
	t.Helper()
	if testing.Short() {
		t.Skip("a browser takes seconds")
	}
	binary := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			binary = path
			break
		}
	}
	if binary == "" {
		t.Skip("no Chromium on this machine")
	}
	theirIn, ourOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ourIn, theirOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), binary,
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-dev-shm-usage",
		"--disable-component-update", "--disable-sync", "--hide-scrollbars", "--user-data-dir="+t.TempDir(), "--remote-debugging-pipe", "about:blank")
	cmd.ExtraFiles = []*os.File{theirIn, theirOut} // the browser reads 3 and writes 4
	if err := cmd.Start(); err != nil {
		t.Fatalf("start browser: %v", err)
	}
	_ = theirIn.Close()
	_ = theirOut.Close()
	b := &browser{out: ourOut, waiting: map[int]chan answer{}, heard: map[string]func(string, json.RawMessage){}}
	read := make(chan struct{})
	go func() {
		defer close(read)
		b.read(ourIn)
	}()
	t.Cleanup(func() {
		_, _ = b.call("", "Browser.close", nil) // it may be gone already
		_ = ourOut.Close()
		_ = cmd.Wait()
		<-read
		_ = ourIn.Close()
	})
	return b
}

// read hands on what the browser says, until it ends.
func (b *browser) read(from io.Reader) {
	in := bufio.NewReaderSize(from, 1<<20)
	for {
		raw, err := in.ReadBytes(0)
		if err != nil {
			b.mu.Lock()
			b.gone = errors.New("the browser has ended")
			for id, wait := range b.waiting {
				wait <- answer{err: b.gone}
				delete(b.waiting, id)
			}
			b.mu.Unlock()
			return
		}
		var m struct {
			ID        int
			Method    string
			SessionID string
			Params    json.RawMessage
			Result    json.RawMessage
			Error     *struct{ Message string }
		}
		if err := json.Unmarshal(raw[:len(raw)-1], &m); err != nil {
			continue
		}
		b.mu.Lock()
		wait, hear := b.waiting[m.ID], b.heard[m.SessionID]
		delete(b.waiting, m.ID)
		b.mu.Unlock()
		switch {
		case m.Method != "":
			if hear != nil {
				hear(m.Method, m.Params)
			}
		case wait == nil:
		case m.Error != nil:
			wait <- answer{err: errors.New(m.Error.Message)}
		default:
			wait <- answer{result: m.Result}
		}
	}
}

func (b *browser) call(session, method string, params any) (json.RawMessage, error) {
	wait := make(chan answer, 1)
	b.mu.Lock()
	if b.gone != nil {
		b.mu.Unlock()
		return nil, b.gone
	}
	b.last++
	id := b.last
	b.waiting[id] = wait
	body := map[string]any{"id": id, "method": method}
	if session != "" {
		body["sessionId"] = session
	}
	if params != nil {
		body["params"] = params
	}
	raw, err := json.Marshal(body)
	if err == nil {
		_, err = b.out.Write(append(raw, 0))
	}
	b.mu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	select {
	case a := <-wait:
		if a.err != nil {
			return nil, fmt.Errorf("%s: %w", method, a.err)
		}
		return a.result, nil
	case <-time.After(browserPatience):
		return nil, fmt.Errorf("%s: no answer in %s", method, browserPatience)
	}
}

// tab is an open page.
type tab struct {
	t       *testing.T
	b       *browser
	session string
	loaded  chan struct{}

	mu     sync.Mutex
	faults []string // what the console complains of
}

// open shows an address in a tab of its own, in the wanted width and scheme (light
// or dark).
func (b *browser) open(t *testing.T, url string, width int, scheme string) *tab {
	t.Helper()
	p := &tab{t: t, b: b, loaded: make(chan struct{}, 16)}
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
	p.goTo(url)
	return p
}

func (p *tab) hear(method string, params json.RawMessage) {
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

func (p *tab) do(method string, params any) json.RawMessage {
	p.t.Helper()
	out, err := p.b.call(p.session, method, params)
	if err != nil {
		p.t.Fatal(err)
	}
	return out
}

func (p *tab) into(v any, session, method string, params any) {
	p.t.Helper()
	out, err := p.b.call(session, method, params)
	if err == nil {
		err = json.Unmarshal(out, v)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// goTo shows an address and waits until it is loaded.
func (p *tab) goTo(url string) {
	p.t.Helper()
	p.do("Page.navigate", map[string]any{"url": url})
	p.awaitLoad()
}

func (p *tab) awaitLoad() {
	p.t.Helper()
	select {
	case <-p.loaded:
	case <-time.After(browserPatience):
		p.t.Fatal("the page did not load")
	}
}

// eval runs JavaScript in the page and reads its value, of a promise what it gives.
func (p *tab) eval(expression string, into any) {
	p.t.Helper()
	var out struct {
		Result struct {
			Value       json.RawMessage
			Description string
		}
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	p.into(&out, p.session, "Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true})
	if e := out.ExceptionDetails; e != nil {
		p.t.Fatalf("%s: %s %s", expression, e.Text, e.Exception.Description)
	}
	if into == nil {
		return
	}
	if err := json.Unmarshal(out.Result.Value, into); err != nil {
		p.t.Fatalf("%s gives %s: %v", expression, out.Result.Value, err)
	}
}

func (p *tab) text(expression string) (out string) {
	p.t.Helper()
	p.eval("String("+expression+")", &out)
	return out
}

// await waits in the page until an expression is true.
func (p *tab) await(expression string) {
	p.t.Helper()
	var ok bool
	p.eval(`new Promise(done => {
		const end = Date.now() + 60000;
		const look = () => { if (`+expression+`) done(true); else if (Date.now() > end) done(false); else setTimeout(look, 50); };
		look();
	})`, &ok)
	if !ok {
		p.t.Fatalf("did not become true: %s\nthe page says: %s", expression, clip(p.text("document.body.innerText"), 2000))
	}
}

// keys are those that tests press, with the numbers that the protocol wants.
var keys = map[string]int{"Tab": 9, "Enter": 13, "Escape": 27, "/": 191}

func (p *tab) press(key string) {
	p.t.Helper()
	down := map[string]any{"type": "keyDown", "key": key, "code": key, "windowsVirtualKeyCode": keys[key]}
	switch key {
	case "Enter":
		down["text"] = "\r"
	case "/":
		down["text"] = "/"
	}
	p.do("Input.dispatchKeyEvent", down)
	p.do("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key, "code": key, "windowsVirtualKeyCode": keys[key]})
}

func (p *tab) write(text string) {
	p.t.Helper()
	p.do("Input.insertText", map[string]any{"text": text})
}

// complaints are what the console has said.
func (p *tab) complaints() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.faults)
}

// picture is the page as PNG, as high as it is but not higher than most.
func (p *tab) picture(most int) []byte {
	p.t.Helper()
	var size struct {
		CSSContentSize struct{ Width, Height float64 }
	}
	p.into(&size, p.session, "Page.getLayoutMetrics", nil)
	var shot struct{ Data string }
	p.into(&shot, p.session, "Page.captureScreenshot", map[string]any{
		"format": "png", "captureBeyondViewport": true, "optimizeForSpeed": false,
		"clip": map[string]any{"x": 0, "y": 0, "width": size.CSSContentSize.Width, "height": min(size.CSSContentSize.Height, float64(most)), "scale": 1},
	})
	out, err := base64.StdEncoding.DecodeString(shot.Data)
	if err != nil {
		p.t.Fatal(err)
	}
	return out
}
