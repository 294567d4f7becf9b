package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"time"
)

// profileServer serves Go's profiles at address. The address must be on the loopback interface, because
// profiles expose internal data and need no login. stop ends the server.
func profileServer(ctx context.Context, address string, log *slog.Logger) (stop func(), err error) {
	host, port, err := net.SplitHostPort(address)
	if host == "localhost" {
		host = "127.0.0.1"
	}
	ip, ipErr := netip.ParseAddr(host)
	if err != nil || ipErr != nil || !ip.IsLoopback() {
		return nil, usage("write it like 127.0.0.1:6060", "--profile-listen: %q is not an address of this machine alone; profiles have no login", address)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", net.JoinHostPort(ip.String(), port))
	if err != nil {
		return nil, fmt.Errorf("serve profiles: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	server := &http.Server{Handler: ownHost(mux), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error("profiles are not served any more", "error", err)
		}
	}()
	log.Info("profiles are served", "address", "http://"+l.Addr().String()+"/debug/pprof/")
	return func() {
		_ = server.Close() // a running profile ends with the process
		<-done
	}, nil
}

// ownHost rejects requests for another host name. Otherwise, a page in a browser on this machine could send
// requests with a name that resolves to this machine.
func ownHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		if ip, err := netip.ParseAddr(host); host != "localhost" && (err != nil || !ip.IsLoopback()) {
			http.Error(rw, "profiles are for this machine alone", http.StatusForbidden)
			return
		}
		next.ServeHTTP(rw, r)
	})
}
