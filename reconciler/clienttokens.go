package reconciler

import (
	"fmt"
	"sync"

	"github.com/weir-gitops/weir/reconciler/step"
)

// tokenReplays is the number of requests for the same version with the same token. After a read
// that does not show the version yet, weir requests it again, and the token prevents a second one.
// After that many requests the version is gone for good.
// Assumed of AWS: version-tokens.
const tokenReplays = 3

// clientTokens counts how often AWS answered requests with the same client token.
type clientTokens struct {
	mu       sync.Mutex
	answered recent[int]
}

// fresh changes the client token of a version that AWS keeps answering with although no read shows
// it: somebody deleted the version outside weir.
func (c *clientTokens) fresh(a step.Action) step.Action {
	v, ok := a.(step.CreateLaunchTemplateVersion)
	if !ok {
		return a
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := c.answered.get(v.Token); n >= tokenReplays {
		v.Token = fmt.Sprintf("%s-%d", v.Token, n)
	}
	return v
}

// answer notes an answer of AWS to a step with a token. The token is that of the plan, not the one
// that fresh made of it.
func (c *clientTokens) answer(token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answered.set(token, c.answered.get(token)+1)
}
