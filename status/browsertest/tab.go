package browsertest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// Tab is an open page. Its methods fail the test if the browser returns an error or does not answer.
type Tab struct {
	t      *testing.T
	ctx    context.Context
	loaded chan struct{}

	mu     sync.Mutex
	faults []string // errors and warnings in the console
}

// Open opens an address in a new tab, with a width in pixels and a colour scheme ("light" or "dark"). The
// tab is closed at the end of the test.
func (b *Browser) Open(t *testing.T, url string, width int, scheme string) *Tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx)
	t.Cleanup(cancel)
	p := &Tab{t: t, ctx: ctx, loaded: make(chan struct{}, 16)}
	if err := chromedp.Listen(ctx, p.hear); err != nil {
		t.Fatal(err)
	}
	do(p, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: int64(width), Height: 900, DeviceScaleFactor: 1})
	do(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}})
	p.Go(url)
	return p
}

func (p *Tab) hear(event any) {
	fault := ""
	switch e := event.(type) {
	case *page.EventLoadEventFired:
		select {
		case p.loaded <- struct{}{}:
		default:
		}
	case *runtime.EventExceptionThrown:
		fault = said(e.ExceptionDetails)
	case *runtime.EventConsoleAPICalled:
		if e.Type == "error" || e.Type == "warning" {
			fault = string(e.Type)
			for _, a := range e.Args {
				fault += " " + string(a.Value) + a.Description
			}
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == "error" || e.Entry.Level == "warning" {
			fault = e.Entry.Text + " " + e.Entry.URL
		}
	}
	if fault != "" {
		p.mu.Lock()
		p.faults = append(p.faults, fault)
		p.mu.Unlock()
	}
}

// said returns the text of an exception and its position.
func said(e *runtime.ExceptionDetails) string {
	text := fmt.Sprintf("%s:%d: %s", e.URL, e.LineNumber+1, e.Text)
	if e.Exception != nil {
		text += " " + e.Exception.Description
	}
	return text
}

// do sends a command to the tab's page.
func do[P, R any](p *Tab, command cdp.Command[P, R], params P) R {
	p.t.Helper()
	out, err := call(p, command, params)
	if err != nil {
		p.t.Fatal(err)
	}
	return out
}

func call[P, R any](p *Tab, command cdp.Command[P, R], params P) (R, error) {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	out, err := chromedp.Call(ctx, command, params)
	if err != nil {
		err = fmt.Errorf("%s: %w", command.Method, err)
	}
	return out, err
}

// Go navigates to an address and waits until it is loaded.
func (p *Tab) Go(url string) {
	p.t.Helper()
	for len(p.loaded) > 0 { // earlier loads, caused by links and forms
		<-p.loaded
	}
	if gone := do(p, page.Navigate, page.NavigateParams{URL: url}); gone.ErrorText != "" {
		p.t.Fatalf("%s: %s", url, gone.ErrorText)
	}
	p.AwaitLoad()
}

// AwaitLoad waits until a page is loaded by a link or a form.
func (p *Tab) AwaitLoad() {
	p.t.Helper()
	select {
	case <-p.loaded:
	case <-time.After(patience):
		p.t.Fatal("the page did not load")
	}
}

// Scripts sets whether pages that are loaded from now on may run scripts. In a new tab, they may. Eval and
// the methods that use it require that.
func (p *Tab) Scripts(may bool) {
	p.t.Helper()
	do(p, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !may})
}

// Eval runs JavaScript in the page and decodes its result from JSON. It awaits promises. A nil into
// discards the result.
func (p *Tab) Eval(expression string, into any) {
	p.t.Helper()
	if err := p.try(expression, into); err != nil {
		p.t.Fatal(err)
	}
}

func (p *Tab) try(expression string, into any) error {
	out, err := call(p, runtime.Evaluate, runtime.EvaluateParams{Expression: expression, ReturnByValue: new(true), AwaitPromise: new(true)})
	if err != nil {
		return err
	}
	if out.ExceptionDetails != nil {
		return fmt.Errorf("%s: %s", expression, said(out.ExceptionDetails))
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(out.Result.Value, into); err != nil {
		return fmt.Errorf("%s gives %s: %w", expression, out.Result.Value, err)
	}
	return nil
}

// Text returns the value of an expression in the page, converted to a string by JavaScript.
func (p *Tab) Text(expression string) (out string) {
	p.t.Helper()
	p.Eval("String("+expression+")", &out)
	return out
}

// evaluates reports whether an expression is true. It returns false while no page is loaded.
func (p *Tab) evaluates(expression string) (ok bool) {
	return p.try("Boolean("+expression+")", &ok) == nil && ok
}

// Await waits until an expression is true in a loaded page: the current one, or one that a link or a form
// opens.
func (p *Tab) Await(expression string) {
	p.t.Helper()
	for end := time.Now().Add(patience); !p.evaluates("document.readyState === 'complete' && (" + expression + ")"); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			p.fail("did not become true: " + expression)
		}
	}
}

// Shows waits until a text is on the page.
func (p *Tab) Shows(text string) {
	p.t.Helper()
	p.Await("document.body.innerText.includes(" + quoted(text) + ")")
}

// TabTo presses the key Tab until the element of a CSS selector is focused.
func (p *Tab) TabTo(selector string) {
	p.t.Helper()
	for range 200 {
		if p.evaluates("document.activeElement !== null && document.activeElement.matches(" + quoted(selector) + ")") {
			return
		}
		p.Press("Tab")
	}
	p.fail("the keyboard does not lead to " + selector)
}

// fail ends the test with a reason and the text of the page.
func (p *Tab) fail(why string) {
	p.t.Helper()
	var page string
	if err := p.try("location.href + ' says: ' + document.body.innerText.slice(0, 2000)", &page); err != nil {
		page = err.Error()
	}
	p.t.Fatalf("%s\n%s", why, page)
}

// quoted returns a text as a JavaScript string literal.
func quoted(text string) string {
	raw, _ := json.Marshal(text) // a string can always be encoded
	return string(raw)
}

// keys maps names to the keys that tests press.
var keys = map[string]string{"Tab": kb.Tab, "Enter": kb.Enter, "ArrowDown": kb.ArrowDown}

// Press presses a key: Tab, Enter, ArrowDown, or a character. As on a keyboard, one event carries both the
// key and its text, so that a page that handles the key itself also prevents the text. chromedp's own
// function sends two events.
func (p *Tab) Press(key string) {
	p.t.Helper()
	if named, ok := keys[key]; ok {
		key = named
	}
	k := kb.Keys[[]rune(key)[0]]
	if k == nil {
		p.t.Fatalf("there is no key %q", key)
	}
	event := input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyDown, Key: k.Key, Code: k.Code, WindowsVirtualKeyCode: k.Windows}
	if k.Print {
		event.Text = k.Text
	}
	do(p, input.DispatchKeyEvent, event)
	event.Type, event.Text = input.DispatchKeyEventTypeKeyUp, ""
	do(p, input.DispatchKeyEvent, event)
}

// Write types into the focused element.
func (p *Tab) Write(text string) {
	p.t.Helper()
	do(p, input.InsertText, input.InsertTextParams{Text: text})
}

// Complaints returns the errors and warnings in the console since the tab was opened, for all of its pages.
// They include responses with a status of 400 or more.
func (p *Tab) Complaints() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.faults)
}

// Picture returns a screenshot of the page as PNG, with the height of the page but at most most pixels.
func (p *Tab) Picture(most int) []byte {
	p.t.Helper()
	size := do(p, page.GetLayoutMetrics, cdp.Empty{}).CSSContentSize
	return do(p, page.CaptureScreenshot, page.CaptureScreenshotParams{
		CaptureBeyondViewport: new(true), Clip: &page.Viewport{Width: size.Width, Height: min(size.Height, float64(most)), Scale: 1},
	}).Data
}
