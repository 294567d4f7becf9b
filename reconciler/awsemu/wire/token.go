package wire

import (
	"encoding/json"
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

// clientTokenLife is how long a client token is stored.
const clientTokenLife = 24 * time.Hour

const TimerForgetToken = "core.forget-token"

// Idempotent runs a call at most once per client token. The same token with the same parameters gets the
// first answer again. With other parameters it gets an error. do returns a name for the resource that the
// call created. If alive no longer finds it, the token is removed and the call runs again. A call with an
// empty token always runs.
func (rq *Exchange) Idempotent(token string, alive func(resource string) bool, do func() (string, error)) error {
	return rq.IdempotentFor(clientTokenLife, token, alive, do)
}

// IdempotentFor is like Idempotent, but stores tokens for the given time.
func (rq *Exchange) IdempotentFor(life time.Duration, token string, alive func(resource string) bool, do func() (string, error)) error {
	key := rq.Service.Name + ":" + rq.Operation.Name + ":" + token
	if known := rq.World.Tokens[key]; token != "" && known != nil && alive(known.Resource) {
		if known.Digest != rq.digest() {
			return rq.Service.Dialect.TokenMismatch()
		}
		return rq.restore(known.Answer)
	}
	resource, err := do()
	if err != nil || token == "" {
		return err
	}
	saved, err := rq.saved()
	if err != nil {
		return err
	}
	if rq.World.Tokens[key] == nil {
		rq.World.After(life, TimerForgetToken, key)
	}
	rq.World.Tokens[key] = &world.ClientToken{Digest: rq.digest(), Answer: saved, Resource: resource}
	return nil
}

func (rq *Exchange) saved() ([]byte, error) {
	if rq.Form != nil {
		return append([]byte(nil), rq.XML.Buf...), nil
	}
	return json.Marshal(rq.Reply)
}

func (rq *Exchange) restore(answer []byte) error {
	if rq.Form != nil {
		rq.XML.Buf = append(rq.XML.Buf[:0], answer...)
		return nil
	}
	rq.Reply = json.RawMessage(answer)
	return nil
}

func ForgetToken(r *world.Region, key string) { delete(r.Tokens, key) }
