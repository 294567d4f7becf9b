package commits

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/weir-gitops/weir/render/visible"
)

// contextName cuts a context to limit. The end becomes a hash of the whole, so
// that two long names stay two contexts, the same in every process.
func contextName(s string, limit int) string {
	if visible.Units(s) <= limit {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	suffix := "-" + hex.EncodeToString(sum[:4])
	return strings.TrimSuffix(visible.Clip(s, limit-len(suffix)+1), "…") + suffix
}
