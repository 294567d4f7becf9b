package commands

import (
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/gates"
)

// forwarded lists the headers of proxies. A request with one of them comes from elsewhere, even if the
// proxy is on this machine.
var forwarded = []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip", "Via"}

// local rejects requests that do not come from a program on this machine: from another machine, through a
// proxy, or from a page in a browser.
func local(r *http.Request, kind string) error {
	const hint = "run the command on the machine on which weir runs"
	if !fromHere(r) || slices.ContainsFunc(forwarded, func(h string) bool { return r.Header.Get(h) != "" }) {
		return fault(hint, "weir accepts commands from this machine only")
	}
	if r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != "" {
		return fault(hint, "weir accepts commands from programs, not from pages")
	}
	if err := program(r, kind); err != nil {
		return err
	}
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if host != "localhost" && net.ParseIP(strings.Trim(host, "[]")) == nil {
		return fault("name the daemon by its address", "weir does not accept commands under the name %q", gates.Line(host, 80))
	}
	return nil
}

// program rejects requests that a form of a page could also send.
func program(r *http.Request, kind string) error {
	const hint = "use the weir command"
	if r.Header.Get(Header) == "" {
		return fault(hint, "weir accepts commands from programs, not from pages")
	}
	if is, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); is != kind {
		return fault(hint, "the request is not of type %s", kind)
	}
	return nil
}

// fromHere reports whether a request came over the loopback interface or a Unix socket.
func fromHere(r *http.Request) bool {
	if at, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok && at.Network() == "unix" {
		return true
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
