package access

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestWhoMayDoWhat(t *testing.T) {
	s := newSite(t, nil)
	const elsewhere, proxy = "192.0.2.7", "10.0.0.1"
	token := func(t string) []string { return []string{"Authorization: Bearer " + t} }
	named := func(user, groups string) []string {
		return []string{"X-Forwarded-User: " + user, "X-Forwarded-Groups: " + groups, "X-Weir-Proxy-Secret: " + proxySecret}
	}
	command := func(fields []string) []string {
		return append(slices.Clone(fields), "X-Weir-Command: 1", "Content-Type: application/json")
	}
	for name, tc := range map[string]struct {
		from, method, path string
		fields             []string
		code               int
		has                string
	}{
		"nobody reads":                {elsewhere, "GET", "/", nil, 401, "the caller is unknown"},
		"nobody reads the API":        {elsewhere, "GET", "/api/v1/pools", nil, 401, `"hint":`},
		"nobody in a browser":         {elsewhere, "GET", "/pools?q=a", []string{"Accept: text/html"}, 303, ""},
		"nobody commands":             {elsewhere, "POST", "/api/v1/suspend", command(nil), 401, ""},
		"nobody on this machine":      {"127.0.0.1", "POST", "/api/v1/suspend", command(nil), 401, ""},
		"nobody reads metrics":        {elsewhere, "GET", "/metrics", nil, 401, ""},
		"health for everybody":        {elsewhere, "GET", "/healthz", nil, 200, "ok"},
		"ready for everybody":         {elsewhere, "GET", "/readyz", nil, 503, "no"},
		"health is not for writing":   {elsewhere, "POST", "/healthz", nil, 405, ""},
		"what pages are made of":      {elsewhere, "GET", "/assets/style.css", nil, 200, ""},
		"an asset by a detour":        {elsewhere, "GET", "/assets/%2e%2e/metrics", nil, 401, "the caller is unknown"},
		"an asset in one segment":     {elsewhere, "GET", "/assets%2Fstyle.css", nil, 401, "the caller is unknown"},
		"an asset is only read":       {elsewhere, "POST", "/assets/style.css", nil, 401, "the caller is unknown"},
		"health in full":              {elsewhere, "GET", "/readyz", token(readerToken), 503, "through"},
		"health with a bad token":     {elsewhere, "GET", "/healthz", token(strings.Repeat("x", 40)), 200, "ok"},
		"a reader reads":              {elsewhere, "GET", "/api/v1/pools", token(readerToken), 200, "reader/token/read"},
		"a scheme in other letters":   {elsewhere, "GET", "/", []string{"Authorization: bearer " + readerToken}, 200, "reader/token/read"},
		"a reader reads metrics":      {elsewhere, "GET", "/metrics", token(readerToken), 200, ""},
		"a reader does not command":   {elsewhere, "POST", "/api/v1/suspend", command(token(readerToken)), 403, "the role of reader is read, and this needs operate"},
		"an operator commands":        {elsewhere, "POST", "/api/v1/suspend", command(token(opsToken)), 200, "ops/token/operate"},
		"an operator without header":  {elsewhere, "POST", "/api/v1/suspend", token(opsToken), 403, "not from pages"},
		"an operator with a form":     {elsewhere, "POST", "/actions/suspend", token(opsToken), 403, "another login"},
		"from a page elsewhere":       {elsewhere, "POST", "/api/v1/suspend", command(append(token(opsToken), "Sec-Fetch-Site: cross-site")), 403, "not weir"},
		"from another origin":         {elsewhere, "POST", "/api/v1/suspend", command(append(token(opsToken), "Origin: https://evil.example.com")), 403, "not weir"},
		"metrics with its token":      {elsewhere, "GET", "/metrics", token(metricsToken), 200, "prometheus/token/metrics"},
		"no more than metrics":        {elsewhere, "GET", "/api/v1/pools", token(metricsToken), 403, "the role of prometheus is metrics"},
		"deleting":                    {elsewhere, "DELETE", "/api/v1/pools", token(readerToken), 403, ""},
		"preflight":                   {elsewhere, "OPTIONS", "/api/v1/suspend", nil, 401, ""},
		"half a token":                {elsewhere, "GET", "/", token(opsToken[1:]), 401, "is unknown"},
		"a token and more":            {elsewhere, "GET", "/", token(opsToken + "x"), 401, "is unknown"},
		"no token":                    {elsewhere, "GET", "/", token(""), 401, "is unknown"},
		"a password":                  {elsewhere, "GET", "/", []string{"Authorization: Basic b3BzOm9wcw=="}, 401, "the caller"},
		"a token in the address":      {elsewhere, "GET", "/?token=" + opsToken, nil, 401, ""},
		"the proxy names a member":    {proxy, "GET", "/", named("ann", "staff, sre"), 200, "ann/proxy/operate"},
		"the first rule counts":       {proxy, "GET", "/", named("guest", "sre"), 200, "guest/proxy/read"},
		"another member":              {proxy, "GET", "/", named("bob", "dev"), 200, "bob/proxy/read"},
		"a group in other letters":    {proxy, "GET", "/", named("bob", "Dev"), 403, "there is no role for bob"},
		"no member":                   {proxy, "GET", "/", named("eve", ""), 403, "there is no role for eve"},
		"a member commands":           {proxy, "POST", "/api/v1/suspend", command(named("ann", "sre")), 200, "ann/proxy/operate"},
		"a member, from a page":       {proxy, "POST", "/api/v1/suspend", command(append(named("ann", "sre"), "Sec-Fetch-Site: cross-site")), 403, ""},
		"a proxy elsewhere":           {elsewhere, "GET", "/", named("ann", "sre"), 401, "the caller"},
		"on this machine":             {"127.0.0.1", "GET", "/", named("ann", "sre"), 401, "the caller"},
		"without the secret":          {proxy, "GET", "/", named("ann", "sre")[:2], 401, "the caller"},
		"with another secret":         {proxy, "GET", "/", append(named("ann", "sre")[:2], "X-Weir-Proxy-Secret: "+opsToken), 401, "the caller"},
		"with two secrets":            {proxy, "GET", "/", append(named("ann", "sre"), "X-Weir-Proxy-Secret: a"), 401, "the caller"},
		"with two users":              {proxy, "GET", "/", append(named("ann", "sre"), "X-Forwarded-User: root"), 400, "more than one user"},
		"a user that is not a name":   {proxy, "GET", "/", named("a\tb", "sre"), 400, "invalid user name"},
		"a proxy without a user":      {proxy, "GET", "/", named("", "sre"), 401, "the caller"},
		"a token through the proxy":   {proxy, "GET", "/", append(named("", ""), "Authorization: Bearer "+readerToken), 200, "reader/token/read"},
		"the proxy's own token":       {proxy, "GET", "/", append(named("ann", "sre"), "Authorization: Bearer of-the-proxy"), 200, "ann/proxy/operate"},
		"a made-up session":           {elsewhere, "GET", "/", []string{"Cookie: __Host-weir=e30.e30"}, 401, "the caller"},
		"nobody logs in with GET":     {elsewhere, "GET", "/login?token=" + opsToken, []string{"Accept: text/html"}, 200, "Log in"},
		"a login without a form":      {elsewhere, "POST", "/login", []string{"Accept: text/html"}, 403, "another login"},
		"logout is a button":          {elsewhere, "GET", "/logout", nil, 405, ""},
		"a request that is too large": {elsewhere, "POST", "/login", []string{"Accept: text/html", "Content-Type: application/x-www-form-urlencoded", "body"}, 413, "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			// Each has its bucket to itself.
			s.guard.failed = newLimiter(failedLimit, s.clock.now)
			body := ""
			if i := slices.Index(tc.fields, "body"); i >= 0 {
				tc.fields, body = tc.fields[:i], "token="+strings.Repeat("a", 2*maxBody)
			}
			rec := s.ask(tc.method, tc.path, tc.from, body, tc.fields...)
			if rec.Code != tc.code || !strings.Contains(rec.Body.String(), tc.has) {
				t.Errorf("%d %s, want %d with %q", rec.Code, rec.Body, tc.code, tc.has)
			}
			if policy := rec.Header().Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
				t.Errorf("policy is %q", policy)
			}
			if tc.path != "/assets/style.css" && rec.Header().Get("Cache-Control") != "no-store" {
				t.Errorf("it may be kept: %q", rec.Header().Get("Cache-Control"))
			}
			if tc.code == 401 && rec.Header().Get("WWW-Authenticate") == "" {
				t.Error("a 401 does not say how to log in")
			}
		})
	}
	for _, secret := range []string{opsToken, readerToken, metricsToken, proxySecret, strings.Repeat("x", 40)} {
		if strings.Contains(s.log.String(), secret) {
			t.Errorf("the log holds a token:\n%s", s.log)
		}
	}
}

func TestOnLoopbackEverybodyReads(t *testing.T) {
	s := openSite(t)
	for name, tc := range map[string]struct {
		method, path string
		fields       []string
		code         int
	}{
		"by address":                 {"GET", "/", []string{"Host: 127.0.0.1:8344"}, 200},
		"by IPv6 address":            {"GET", "/", []string{"Host: [::1]:8344"}, 200},
		"by localhost":               {"GET", "/", []string{"Host: localhost:8344"}, 200},
		"under a name of a stranger": {"GET", "/api/v1/pools", []string{"Host: evil.example.com"}, 421},
		"health under any name":      {"GET", "/healthz", []string{"Host: weir"}, 200},
		"commands go on":             {"POST", "/api/v1/suspend", []string{"Host: 127.0.0.1:8344"}, 200}, // to who looks where they come from
		"no forms":                   {"POST", "/actions/suspend", []string{"Host: 127.0.0.1:8344"}, 401},
		"no login":                   {"GET", "/login", []string{"Host: 127.0.0.1:8344"}, 404},
	} {
		if rec := s.ask(tc.method, tc.path, "127.0.0.1", "", tc.fields...); rec.Code != tc.code {
			t.Errorf("%s: %d, want %d: %s", name, rec.Code, tc.code, rec.Body)
		}
	}
}

func TestAnonymousMayReadWhereItIsWritten(t *testing.T) {
	s := newSite(t, func(c *configured) { c.Access.Anonymous = AnonymousRead })
	if rec := s.ask("GET", "/", "192.0.2.7", ""); rec.Code != 200 || !strings.Contains(rec.Body.String(), "through //read") {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	if rec := s.ask("POST", "/api/v1/suspend", "127.0.0.1", "", "X-Weir-Command: 1"); rec.Code != 401 {
		t.Errorf("a command without a login, where there are tokens: %d", rec.Code)
	}
	if rec := s.ask("GET", "/", "192.0.2.7", "", "Authorization: Bearer "+strings.Repeat("x", 40)); rec.Code != 401 {
		t.Errorf("a bad token: %d", rec.Code)
	}
}

func TestTooManyTries(t *testing.T) {
	s := newSite(t, nil)
	bad := "Authorization: Bearer " + strings.Repeat("x", leastToken)
	for range failedLimit.burst {
		if rec := s.ask("GET", "/", "192.0.2.7", "", bad); rec.Code != 401 {
			t.Fatalf("%d", rec.Code)
		}
	}
	rec := s.ask("GET", "/", "192.0.2.7", "", bad)
	if rec.Code != 429 || rec.Header().Get("Retry-After") != "6" {
		t.Errorf("%d, after %q", rec.Code, rec.Header().Get("Retry-After"))
	}
	if rec := s.ask("GET", "/", "192.0.2.7", "", "Authorization: Bearer "+opsToken); rec.Code != 200 {
		t.Errorf("wrong tokens lock out a right one from the same address: %d", rec.Code)
	}
	if rec := s.ask("GET", "/", "192.0.2.8", "", "Authorization: Bearer "+opsToken); rec.Code != 200 {
		t.Errorf("another address: %d", rec.Code)
	}
	// The addresses of one network are one machine's.
	for i := range failedLimit.burst {
		s.ask("GET", "/", "[2001:db8::"+string(rune('1'+i%9))+"]", "", bad)
	}
	if rec := s.ask("GET", "/", "[2001:db8::ffff]", "", bad); rec.Code != 429 {
		t.Errorf("a neighbour: %d", rec.Code)
	}
	s.clock.move(6 * time.Second)
	if rec := s.ask("GET", "/", "192.0.2.7", "", "Authorization: Bearer "+opsToken); rec.Code != 200 {
		t.Errorf("after the time: %d", rec.Code)
	}
	// Actions are counted by who acts, wherever they come from.
	codes := map[int]int{}
	for i := range actionLimit.burst + 5 {
		codes[s.ask("POST", "/api/v1/suspend", "198.51.100."+string(rune('1'+i%9)), "", "Authorization: Bearer "+opsToken, "X-Weir-Command: 1").Code]++
	}
	if codes[200] != actionLimit.burst || codes[429] != 5 {
		t.Errorf("actions: %v", codes)
	}
}

// TestWhoIsBehindTheProxy counts tries by the address that the proxy tells, and
// hears nobody else tell one.
func TestWhoIsBehindTheProxy(t *testing.T) {
	s := newSite(t, nil)
	bad := "Authorization: Bearer " + strings.Repeat("x", leastToken)
	for range failedLimit.burst {
		s.ask("GET", "/", "10.0.0.1", "", bad, "X-Forwarded-For: 198.51.100.1, 203.0.113.9")
	}
	for name, tc := range map[string]struct {
		from, forwarded string
		code            int
	}{
		"the same":            {"10.0.0.1", "203.0.113.9", 429},
		"behind it":           {"10.0.0.1", "203.0.113.9, 10.0.0.1", 429},
		"another":             {"10.0.0.1", "203.0.113.10", 401},
		"what a browser says": {"10.0.0.1", "203.0.113.9, 203.0.113.10", 401},
		"not through it":      {"192.0.2.7", "203.0.113.9", 401},
	} {
		if rec := s.ask("GET", "/", tc.from, "", bad, "X-Forwarded-For: "+tc.forwarded); rec.Code != tc.code {
			t.Errorf("%s: %d, want %d", name, rec.Code, tc.code)
		}
	}
}

func TestBucketsAreBounded(t *testing.T) {
	c := &clock{at: time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)}
	l := newLimiter(failedLimit, c.now)
	for i := range maxBuckets + 100 {
		l.count(string(rune(i)) + "x")
	}
	if len(l.buckets) > maxBuckets+1 {
		t.Errorf("%d buckets", len(l.buckets))
	}
	if l.left("one more") == 0 {
		t.Error("newcomers do not share a bucket")
	}
	c.move(time.Hour)
	if l.try("one more") != 0 || len(l.buckets) > 2 {
		t.Errorf("what is idle is kept: %d", len(l.buckets))
	}
}

// Addresses that tried once and come no more are forgotten, long before there are too
// many to remember.
func TestALimiterForgets(t *testing.T) {
	c := &clock{at: time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)}
	l := newLimiter(failedLimit, c.now)
	for i := range 5000 {
		l.count(fmt.Sprint(i))
	}
	for i := range 12_000 {
		c.move(time.Minute)
		l.count(fmt.Sprint("later ", i))
	}
	if n := len(l.buckets); n > 2*leastSweep {
		t.Errorf("%d addresses are remembered", n)
	}
	for range failedLimit.burst {
		l.count("somebody")
	}
	for i := range 1000 { // who is over the limit is not forgotten for others
		l.count(fmt.Sprint("more ", i))
	}
	if l.left("somebody") == 0 {
		t.Error("somebody may try again")
	}
}
