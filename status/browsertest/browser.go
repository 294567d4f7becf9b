// Package browsertest drives a headless Chromium in tests, through chromedp. A test is
// skipped where there is no Chromium, and in short runs.
package browsertest

import (
	"context"
	"os/exec"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// patience bounds what a browser is waited for. A busy machine takes long, and no
// test says how long.
const patience = 90 * time.Second

// Browser is a headless Chromium that runs as long as the test that started it.
type Browser struct{ ctx context.Context }

// Start starts a browser for a test and those below it, or skips the test where no
// browser is installed. It does not check certificates: servers in tests have their
// own.
func Start(t *testing.T) *Browser {
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
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(binary), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.IgnoreCertErrors, chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("hide-scrollbars", true))
	// Not by the test's context: that would kill the browser before it can end its children.
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start browser: %v", err)
	}
	t.Cleanup(func() {
		bounded, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		_ = chromedp.Cancel(bounded) // a late end fails no test
	})
	return &Browser{ctx: ctx}
}
