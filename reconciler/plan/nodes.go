package plan

import (
	"strconv"
	"strings"
	"time"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

const (
	// joinsWithin is how long a machine may be in service without a Ready node until
	// somebody has to look at it.
	joinsWithin = 10 * time.Minute
	// unreadyNamed is how many machines a message names.
	unreadyNamed = 3
	// failureNodes is the failure of a pool whose machines stay without a Ready node.
	failureNodes = "nodes-not-ready"
)

// unready says of a pool's machines in service which have no Ready node, "" where all
// have one or nobody reads nodes. late says that one is so for too long.
func (in Input) unready(pool *intent.Pool) (message string, late bool) {
	if in.Nodes == nil || in.Nodes.Err != nil {
		return "", false
	}
	var named []string
	serving, left := 0, 0
	for _, i := range in.instancesOf(pool) {
		if !i.Ready() {
			continue
		}
		serving++
		node, joined := in.Nodes.ByInstance[i.ID]
		if joined && node.Ready {
			continue
		}
		left++
		since, text := in.inService(i.ID), i.ID+" has not joined the cluster"
		if joined {
			text = "the node " + node.Name + " is not Ready"
			if node.Why != "" {
				text += " (" + node.Why + ")"
			}
			if node.Since.After(since) {
				since = node.Since
			}
		}
		late = late || in.Now.Sub(since) >= joinsWithin
		if len(named) < unreadyNamed {
			named = append(named, text)
		}
	}
	if left == 0 {
		return "", false
	}
	if left > len(named) {
		named = append(named, "and more")
	}
	return strconv.Itoa(left) + " of " + strconv.Itoa(serving) + " machines in service have no Ready node: " + strings.Join(named, "; "), late
}

// unproven reports whether the default version of a launch template stays where it is
// because machines that run the wanted one have not become Ready: AWS calls a rollout
// a success once they are in service.
func (c templates) unproven(pool *intent.Pool, w wantedVersion) bool {
	if !w.movesDefault() {
		return false
	}
	message, _ := c.in.unready(pool)
	if message == "" {
		return false
	}
	c.note(diag.Warning, pool, nil, "rollout-not-ready", "version "+w.version()+" of the launch template "+w.template.Name+" is rolled out, and "+message+
		"; the default version stays "+strconv.FormatInt(w.template.DefaultVersion, 10), "")
	return true
}
