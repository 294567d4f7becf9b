package embedded

import (
	"encoding/json"
	"net/http"

	"github.com/weir-gitops/weir/reconciler/awsemu"
)

// callsPath returns the number of calls of each operation. No path of an AWS service in the emulator starts
// with this, and the request needs no signature.
const callsPath = "/_calls"

// withCallCounts serves the number of calls of each AWS operation as JSON at callsPath, and passes all other
// requests to next.
func withCallCounts(aws *awsemu.Server, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != callsPath {
			next.ServeHTTP(w, r)
			return
		}
		if r.Method != http.MethodGet {
			w.Header().Set("Allow", http.MethodGet)
			http.Error(w, "only GET", http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		out := json.NewEncoder(w)
		out.SetIndent("", "  ")
		_ = out.Encode(aws.CallCounts()) // ignore a disconnected client
	})
}
