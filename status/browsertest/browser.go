// Package browsertest drives a headless Chromium in tests, using chromedp. Tests are skipped in short runs,
// and if no Chromium is installed.
package browsertest

import (
	"context"
	"os/exec"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// patience is the timeout for the browser. It is long because machines may be busy, and because no test
// measures the browser's speed.
const patience = 90 * time.Second

// Browser is a headless Chromium that runs until the test that started it ends.
type Browser struct{ ctx context.Context }

// Start starts a browser for a test and its subtests, or skips the test if no browser is installed. The
// browser does not verify certificates, because test servers have their own.
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
	// The test's context would kill the browser before it can end its child processes.
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
		_ = chromedp.Cancel(bounded) // a late end must not fail a test
	})
	return &Browser{ctx: ctx}
}
