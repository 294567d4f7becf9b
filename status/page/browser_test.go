package page

import (
	"flag"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/status/browsertest"
	"github.com/weir-gitops/weir/status/current"
	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/statustest"
)

var screenshots = flag.String("screenshots", "", "write screenshots of the page to this directory")

func serve(t *testing.T, b *current.State) string {
	t.Helper()
	srv := httptest.NewServer(Handler(b, Options{Metrics: http.NotFoundHandler(), Instances: &fakeFacts{machine: observed.Machine{
		LaunchedAt: statustest.Noon.Add(-time.Hour), Market: "spot", PrivateIP: "10.0.0.7", PrivateDNS: "ip-10-0-0-7.eu-central-1.compute.internal", State: "running", ImageID: "ami-0c1d2e3f405162738",
		Image: observed.Image{Name: "al2023-ami-2023.6.20260101.0-kernel-6.1-arm64", CreatedAt: "2026-01-02T03:04:05.000Z"}, GroupName: "eu-production-web", Notes: []string{"the launch template lt-0123456789abcdef0 no longer exists"},
	}}}))
	t.Cleanup(srv.Close)
	t.Cleanup(b.Live.Close)
	return srv.URL
}

// everyPage are the addresses of all kinds of pages of the fixture's fleet.
var everyPage = map[string]string{
	"fleet": "/", "found": "/?q=web&only=moving", "nothing-found": "/?q=nosuch", "pools": "/pools?sort=missing",
	"target": "/targets/prod-us", "failing": "/targets/staging", "suspended": "/targets/dev", "unread": "/targets/edge-1",
	"plan": "/targets/dev/plan", "pool": "/targets/prod-us/pools/default/web", "nodegroup": "/targets/prod-eu/pools/default/gpu",
	"activity": "/activity", "errors": "/activity?level=error", "passes": "/activity?show=passes", "configuration": "/configuration",
	"missing": "/targets/none", "nowhere": "/nowhere",
}

// showcasePages are those of the showcase that the fleet has not.
var showcasePages = map[string]string{
	"pool": "/targets/eu-production/pools/default/web", "facts": "/targets/eu-production/pools/default/web?facts=1", "instance": "/targets/eu-production/pools/default/web?instance=" + showcaseInstance + "#" + showcaseInstance, "pulls": "/pulls", "pull": "/pulls/fleet/42", "conflict": "/pulls/fleet/41", "configuration": "/configuration",
	"activity": "/activity",
}

// showcaseInstance is an instance of the showcase that is starting.
const showcaseInstance = "i-0a11c3d4e5f687109"

// isLinked is true once a page is told of changes.
const isLinked = "document.body.dataset.linked === 'true'"

func TestBrowser(t *testing.T) {
	b := browsertest.Start(t)
	url := serve(t, fleet())
	shown := serve(t, showcase())
	rolled := rolloutPages(t)

	t.Run("every page is sound", func(t *testing.T) {
		for _, scheme := range []string{"light", "dark"} {
			for _, width := range []int{1280, 390} {
				p := b.Open(t, url, width, scheme)
				pages := map[string]string{}
				for name, path := range everyPage {
					pages[name] = url + path
				}
				for name, path := range showcasePages {
					pages["showcase "+name] = shown + path
				}
				maps.Copy(pages, rolled)
				for name, address := range pages {
					p.Go(address)
					var found []string
					p.Eval(soundness, &found)
					for _, f := range found {
						t.Errorf("%s, %s, %d wide: %s", name, scheme, width, f)
					}
				}
				for _, said := range p.Complaints() {
					if !strings.Contains(said, "/targets/none") && !strings.Contains(said, "/nowhere") { // which are not there
						t.Errorf("the console says %s", said)
					}
				}
			}
		}
	})

	t.Run("the schemes differ", func(t *testing.T) {
		light := b.Open(t, url+"/", 1280, "light").Text("getComputedStyle(document.body).backgroundColor")
		dark := b.Open(t, url+"/", 1280, "dark").Text("getComputedStyle(document.body).backgroundColor")
		if light == dark {
			t.Errorf("both are %s", light)
		}
	})

	t.Run("what changes shows without a reload", func(t *testing.T) {
		shown := fleet()
		p := b.Open(t, serve(t, shown)+"/", 1280, "light")
		p.Eval("window.kept = true; document.querySelector('#q').value = 'half a wo'", nil)
		p.Await(isLinked)
		shown.Targets.Report(t.Context(), statustest.Report("edge-1", statustest.Pool("edge-1", "seen-later")))
		p.Await("document.body.innerText.includes('seen-later')")
		if p.Text("window.kept") != "true" || p.Text("document.querySelector('#q').value") != "half a wo" {
			t.Error("the page was loaded anew, or what was being written is lost")
		}
		if said := p.Complaints(); said != nil {
			t.Errorf("the console says %q", said)
		}
	})

	t.Run("a page of a target does not look for what others do", func(t *testing.T) {
		shown := fleet()
		p := b.Open(t, serve(t, shown)+"/targets/prod-us", 1280, "light")
		// It looks once as it is isLinked, and may look again from two seconds after.
		const looks = "performance.getEntriesByType('resource').filter(r => r.initiatorType === 'fetch')"
		p.Await(isLinked + " && " + looks + ".length === 1 && performance.now() - " + looks + "[0].responseEnd > 2000")
		shown.Targets.Report(t.Context(), statustest.Report("prod-eu", statustest.Pool("prod-eu", "elsewhere")))
		p.Await("document.body.dataset.told === '1'")
		shown.Targets.Report(t.Context(), statustest.Report("prod-us", statustest.Pool("prod-us", "here")))
		p.Await("document.body.innerText.includes('here')")
		if n := p.Text(looks + ".length"); n != "2" {
			t.Errorf("the page looked %s times, not twice", n)
		}
	})

	t.Run("weir that is gone is said, and so is its return", func(t *testing.T) {
		shown := fleet()
		h := Handler(shown, Options{})
		var gone atomic.Bool
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if gone.Load() && r.URL.Path == "/" {
				http.Error(w, "gone", http.StatusServiceUnavailable)
				return
			}
			h.ServeHTTP(w, r)
		}))
		t.Cleanup(srv.Close)
		t.Cleanup(shown.Live.Close)
		p := b.Open(t, srv.URL+"/", 1280, "light")
		p.Await(isLinked)
		gone.Store(true)
		shown.Activity.Add(events.Event{Kind: "configuration-reloaded"})
		p.Await("document.querySelector('#link').textContent.includes('does not answer')")
		gone.Store(false)
		shown.Targets.Report(t.Context(), statustest.Report("edge-1", statustest.Pool("edge-1", "back-again")))
		p.Await("document.body.innerText.includes('back-again') && document.querySelector('#link').textContent === ''")
	})

	t.Run("a search works by keyboard alone", func(t *testing.T) {
		p := b.Open(t, url+"/", 1280, "light")
		p.Press("/")
		if at := p.Text("document.activeElement.id"); at != "q" {
			t.Fatalf("the focus is on %q", at)
		}
		p.Write("batch")
		p.Await("document.querySelectorAll('article').length === 1 && document.body.innerText.includes('1 target and 1 pool found')")
		if at := p.Text("location.search"); at != "?q=batch" {
			t.Errorf("the address has the query %q", at)
		}
		if p.Text("document.activeElement.id") != "q" || p.Text("document.querySelector('#q').value") != "batch" {
			t.Error("the search has lost the focus or its text")
		}
		for range 60 {
			if p.Text("document.activeElement.classList.contains('pool')") == "true" {
				break
			}
			p.Press("Tab")
		}
		p.Press("Enter")
		p.AwaitLoad()
		if at := p.Text("location.pathname"); at != "/targets/prod-us/pools/default/batch-spot" {
			t.Errorf("Enter leads to %s", at)
		}
	})

	t.Run("a keyboard reaches everything, and sees where it is", func(t *testing.T) {
		p := b.Open(t, url+"/targets/prod-us", 1280, "light")
		p.Press("Tab")
		if at := p.Text("document.activeElement.className + ' ' + document.activeElement.getBoundingClientRect().left"); !strings.HasPrefix(at, "skip ") || strings.HasPrefix(at, "skip -") {
			t.Fatalf("the first stop is not the link to the content, in view: %s", at)
		}
		p.Press("Enter")
		if at := p.Text("document.activeElement.id"); at != "main" {
			t.Errorf("the link to the content leads to %q", at)
		}
		seen := map[string]bool{}
		for range 80 {
			p.Press("Tab")
			var stop struct {
				Name    string
				Visible bool
			}
			p.Eval(`(() => { const a = document.activeElement, s = getComputedStyle(a);
				return {name: a.tagName + ' ' + (a.getAttribute('href') || a.name || a.getAttribute('aria-label') || a.innerText || ''),
					visible: a === document.body || s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) > 0 || s.boxShadow !== 'none'}; })()`, &stop)
			if !stop.Visible {
				t.Errorf("%s has the focus and does not show it", stop.Name)
			}
			seen[stop.Name] = true
		}
		var want []string
		p.Eval(`[...document.querySelectorAll('main a[href], main button, main summary')].map(a => a.tagName + ' ' + (a.getAttribute('href') || a.name || a.getAttribute('aria-label') || a.innerText || ''))`, &want)
		for _, w := range want {
			if !seen[w] {
				t.Errorf("the keyboard does not reach %s", w)
			}
		}
	})

	t.Run("a search for an instance leads to it", func(t *testing.T) {
		p := b.Open(t, shown+"/pools", 1280, "light")
		p.Await(isLinked)
		p.Eval("document.querySelector('#q').focus(); document.querySelector('#q').value = '"+showcaseInstance+"'; document.querySelector('#q').dispatchEvent(new InputEvent('input', { bubbles: true }))", nil)
		p.Await("location.pathname === '/targets/eu-production/pools/default/web' && location.hash === '#" + showcaseInstance + "'")
		p.Await("document.querySelector('tr:target') && document.querySelector('tr:target').getBoundingClientRect().bottom <= innerHeight")
		if said := p.Complaints(); said != nil {
			t.Errorf("the console says %q", said)
		}
	})

	t.Run("without scripts it is all there", func(t *testing.T) {
		p := b.Open(t, "about:blank", 1280, "light")
		p.Scripts(false)
		p.Go(url + "/?only=moving")
		p.Scripts(true)
		if text := p.Text("document.body.innerText"); !strings.Contains(text, "1 of 1") && !strings.Contains(text, "37 %") {
			t.Errorf("the page says %s", text)
		}
	})
}

// soundness looks over a page for what keeps people from using it: it returns what
// it finds, in words. The ratios are those of WCAG 2.2, level AA.
const soundness = `(() => {
	const out = [], say = (what, el) => out.push(what + (el ? ': ' + el.outerHTML.slice(0, 160) : ''));
	const shown = (el) => el.checkVisibility({ visibilityProperty: true, opacityProperty: true }) && el.getClientRects().length > 0;
	const name = (el) => (el.getAttribute('aria-label') || (el.getAttribute('aria-labelledby') || '').split(' ').map(id => (document.getElementById(id) || {}).innerText || '').join(' ') ||
		[...(el.labels || [])].map(l => l.innerText).join(' ') || el.innerText || (el.querySelector('title') || {}).textContent || '').trim();
	if (!document.documentElement.lang) say('the language is not said');
	if (!document.title) say('no title');
	for (const tag of ['main', 'h1']) if (document.querySelectorAll(tag).length !== 1) say('not one ' + tag + ' but ' + document.querySelectorAll(tag).length);
	for (const tag of ['header', 'nav', 'footer']) if (!document.querySelector(tag)) say('no ' + tag);
	let level = 0;
	for (const h of document.querySelectorAll('h1, h2, h3, h4')) {
		const n = Number(h.tagName[1]);
		if (n > level + 1) say('a heading skips a level', h);
		if (!name(h)) say('an empty heading', h);
		level = n;
	}
	const ids = new Set();
	for (const el of document.querySelectorAll('[id]')) { if (ids.has(el.id)) say('an id twice', el); ids.add(el.id); }
	for (const el of document.querySelectorAll('[aria-labelledby]')) if (!name(el)) say('a label that is not there', el);
	for (const el of document.querySelectorAll('a, button, input:not([type=hidden]), select, summary, [role=region], nav, [role=img]')) if (shown(el) && !name(el)) say('no name', el);
	for (const el of document.querySelectorAll('nav, [role=group]')) if (!el.getAttribute('aria-label')) say('a navigation without a name', el);
	for (const el of document.querySelectorAll('img')) if (!el.hasAttribute('alt')) say('no text for a picture', el);
	for (const el of document.querySelectorAll('th')) if (!el.scope) say('a header without a scope', el);
	for (const el of document.querySelectorAll('table')) if (!el.querySelector('thead th')) say('a table without headers', el);
	for (const el of document.querySelectorAll('[style], [onclick], style, script:not([src])')) say('style or script in the page', el);
	for (const el of document.querySelectorAll('[tabindex]')) if (el.tabIndex > 0) say('an order of its own', el);
	if (document.documentElement.scrollWidth > document.documentElement.clientWidth) {
		const wide = [...document.querySelectorAll('main *')].filter(el => el.getBoundingClientRect().right > innerWidth + 1 && !el.closest('.scroll')).pop();
		say('the page is wider than the window: ' + document.documentElement.scrollWidth, wide);
	}
	const parse = (c) => { const m = c.match(/[\d.]+/g).map(Number); return m.length > 3 ? m : [...m, 1]; };
	const over = (a, b) => [0, 1, 2].map(i => a[i] * a[3] + b[i] * (1 - a[3])).concat(1);
	const light = (c) => c.slice(0, 3).map(v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4).reduce((s, v, i) => s + v * [0.2126, 0.7152, 0.0722][i], 0);
	const ground = (el) => { let c = [0, 0, 0, 0]; const stack = []; for (; el; el = el.parentElement) stack.push(parse(getComputedStyle(el).backgroundColor)); c = [255, 255, 255, 1]; for (const s of stack.reverse()) c = over(s, c); return c; };
	const seen = new Set();
	const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (walk.nextNode()) {
		const el = walk.currentNode.parentElement;
		if (!walk.currentNode.data.trim() || seen.has(el) || !shown(el) || el.closest('svg, script, noscript')) continue;
		seen.add(el);
		const style = getComputedStyle(el), bg = ground(el), fg = parse(style.color);
		let alpha = 1; for (let a = el; a; a = a.parentElement) alpha *= Number(getComputedStyle(a).opacity);
		const [x, y] = [light(over([fg[0], fg[1], fg[2], fg[3] * alpha], bg)), light(bg)];
		const ratio = (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
		const size = parseFloat(style.fontSize), large = size >= 24 || size >= 18.66 && Number(style.fontWeight) >= 700;
		if (ratio < (large ? 3 : 4.5)) say('a contrast of ' + ratio.toFixed(2) + ' (' + style.color + ')', el);
	}
	// Colours that carry meaning must stand out from those beside them.
	for (const el of document.querySelectorAll('.level .ready, .rollout .done, .shares rect, .machines rect:not(.room)')) {
		const [x, y] = [light(parse(getComputedStyle(el).fill)), light(ground(el.closest('svg').parentElement))];
		const ratio = (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
		if (ratio < 3) { say('a picture with a contrast of ' + ratio.toFixed(2), el); break; }
	}
	return out;
})()`

// TestSoundnessFinds proves that the look over a page finds what is wrong with one.
func TestSoundnessFinds(t *testing.T) {
	b := browsertest.Start(t)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprint(w, `<!doctype html><title>x</title><h1>a</h1><h3 id=a>b</h3><p id=a style="color:#999;background:#fff">pale</p>
			<input><a href=/ ></a><img src=x><table><tr><th>h</table><div style="width:3000px">wide</div>`)
	}))
	t.Cleanup(srv.Close)
	var found []string
	b.Open(t, srv.URL, 1280, "light").Eval(soundness, &found)
	all := strings.Join(found, "\n")
	for _, want := range []string{
		"language", "not one main", "no header", "skips a level", "an id twice", "no name: <input>", "no name: <a", "no text for a picture", "without a scope",
		"without headers", "style or script", "wider than the window", "a contrast of 2.8",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("it does not find %q", want)
		}
	}
	if t.Failed() {
		t.Log(all)
	}
}

// TestScreenshots writes pictures of the pages for people to look at.
func TestScreenshots(t *testing.T) {
	if *screenshots == "" {
		t.Skip("no -screenshots directory")
	}
	b := browsertest.Start(t)
	url := serve(t, fleet())
	empty := current.New(current.Options{Instance: "demo", Now: func() time.Time { return statustest.Noon }})
	empty.Configure(nil, nil)
	shown := serve(t, showcase())
	pages := map[string]string{"empty": serve(t, empty) + "/"}
	maps.Copy(pages, rolloutPages(t))
	for name, path := range showcasePages {
		pages["showcase-"+name] = shown + path
	}
	for name, path := range everyPage {
		pages[name] = url + path
	}
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int{1280, 390} {
			p := b.Open(t, url, width, scheme)
			for name, address := range pages {
				p.Go(address)
				file := filepath.Join(*screenshots, fmt.Sprintf("%s-%s-%d.png", name, scheme, width))
				if err := os.WriteFile(file, p.Picture(4000), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}
