// Package ports finds addresses of this machine for servers of tests that stop and start again.
package ports

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// Systems give ports from 32768 (Linux) or 49152 (macOS) to connections and to listeners on port 0. A server that stops and starts again
// can lose such a port to any of these meanwhile; one below is nobody's.
const low, high = 20000, 32000

// Address is one of 127.0.0.1 that nobody listens on now, and that the system gives to nobody who does not ask for it.
func Address() (string, error) {
	var err error
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", low+rand.IntN(high-low)) //nolint:gosec // no secret
		var l net.Listener
		if l, err = net.Listen("tcp", address); err == nil {
			return address, l.Close()
		}
	}
	return "", err
}
