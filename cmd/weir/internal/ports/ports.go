// Package ports finds addresses of this machine for servers that start later, or stop and start again.
package ports

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// Systems assign ports from 32768 (Linux) or 49152 (macOS) to connections and to listeners on port 0. A
// server that stops and starts again can lose such a port in between. Ports below that are not assigned.
const low, high = 20000, 32000

// Address returns an address on 127.0.0.1 without a listener. The system assigns it only to processes that
// request it.
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
