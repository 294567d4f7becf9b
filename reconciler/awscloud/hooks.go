package awscloud

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// hooksFor is how long the lifecycle hooks of a group are remembered. There is no
// read of several groups' hooks, so each group that declares some costs a call in
// that time.
const hooksFor = 10 * time.Minute

// hookCache remembers the lifecycle hooks of groups.
type hookCache struct {
	mu    sync.Mutex
	known map[string]knownHooks // by the group's name
}

type knownHooks struct {
	arn   string // tells a group from a later one of its name
	hooks []intent.LifecycleHook
	at    time.Time
}

func newHookCache() *hookCache { return &hookCache{known: map[string]knownHooks{}} }

// of returns what is remembered of these groups, and forgets all else. Due are those
// that were read too long ago, the oldest first; since says when.
func (h *hookCache) of(groups map[string]observed.Group, now time.Time) (out map[string]observed.GroupHooks, due []string, since time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	out = map[string]observed.GroupHooks{}
	for name, k := range h.known {
		g, ok := groups[name]
		_, declares := g.Tags[observed.TagHooks]
		old := now.Sub(k.at) >= hooksFor
		if !ok || g.ARN != k.arn || old && !declares {
			delete(h.known, name)
			continue
		}
		out[name] = observed.GroupHooks{Hooks: k.hooks}
		if old {
			due = append(due, name)
		}
	}
	slices.SortFunc(due, func(a, b string) int { return h.known[a].at.Compare(h.known[b].at) })
	if len(due) > 0 {
		since = h.known[due[0]].at
	}
	return out, due, since
}

func (h *hookCache) put(name string, k knownHooks) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.known[name] = k
}

func (h *hookCache) drop(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.known, name)
}

// fillHooks reads the lifecycle hooks of each group.
func (c *Cloud) fillHooks(ctx context.Context, s *observed.State, groups []string) error {
	return each(ctx, groups, c.hooksReader(s))
}

// recallHooks takes hooks from memory, and reads what is due of them as far as there
// are calls to spare: those of many groups are due at one time.
func (c *Cloud) recallHooks(ctx context.Context, s *observed.State) error {
	var due []string
	var since time.Time
	s.Hooks, due, since = c.hooks.of(s.Groups, c.now())
	if len(due) > 0 && c.now().Sub(since) >= hooksFor+pollLate {
		if err := c.fillHooks(ctx, s, due[:1]); err != nil {
			return err
		}
		due = due[1:]
	}
	return poll(ctx, c, "autoscaling", "DescribeLifecycleHooks", due, c.hooksReader(s))
}

// hooksReader reads a group's hooks into s, beside others.
func (c *Cloud) hooksReader(s *observed.State) func(context.Context, string) error {
	return noting(&s.Unread.Hooks, c.groupHooks, func(name string, hooks []intent.LifecycleHook) {
		s.Hooks[name] = observed.GroupHooks{Hooks: hooks, ReadAtPass: true}
		c.hooks.put(name, knownHooks{arn: s.Groups[name].ARN, hooks: hooks, at: c.now()})
	})
}

// groupHooks reads a group's lifecycle hooks, sorted by name. AWS answers all of
// them at once, of a group that is gone it says that there is none.
func (c *Cloud) groupHooks(ctx context.Context, group string) ([]intent.LifecycleHook, error) {
	out, err := c.autoscaling.DescribeLifecycleHooks(ctx, &autoscaling.DescribeLifecycleHooksInput{AutoScalingGroupName: aws.String(group)})
	if e := classify("autoscaling", "DescribeLifecycleHooks", err); e != nil {
		if e.Kind == observed.NotFound {
			return nil, nil
		}
		return nil, e
	}
	hooks := make([]intent.LifecycleHook, len(out.LifecycleHooks))
	for i, h := range out.LifecycleHooks {
		hooks[i] = lifecycleHook(h)
	}
	slices.SortFunc(hooks, func(a, b intent.LifecycleHook) int { return strings.Compare(a.Name, b.Name) })
	return hooks, nil
}

func lifecycleHook(h types.LifecycleHook) intent.LifecycleHook {
	return observed.HookDefaults(intent.LifecycleHook{
		Name: aws.ToString(h.LifecycleHookName), LifecycleTransition: aws.ToString(h.LifecycleTransition),
		NotificationTargetARN: aws.ToString(h.NotificationTargetARN), RoleARN: aws.ToString(h.RoleARN),
		HeartbeatTimeout: aws.ToInt32(h.HeartbeatTimeout), DefaultResult: aws.ToString(h.DefaultResult),
		NotificationMetadata: aws.ToString(h.NotificationMetadata),
	})
}

// putHook sends what AWS would otherwise leave as it is with its default. What
// was remembered of the group's hooks is forgotten first, so that they are read
// again however the call ends.
func (c *Cloud) putHook(ctx context.Context, a step.PutHook) error {
	c.hooks.drop(a.Group)
	h := observed.HookDefaults(a.Hook)
	_, err := c.autoscaling.PutLifecycleHook(ctx, &autoscaling.PutLifecycleHookInput{
		AutoScalingGroupName: aws.String(a.Group), LifecycleHookName: aws.String(h.Name), LifecycleTransition: aws.String(h.LifecycleTransition),
		NotificationTargetARN: stringOrNil(h.NotificationTargetARN), RoleARN: stringOrNil(h.RoleARN),
		HeartbeatTimeout: aws.Int32(h.HeartbeatTimeout), DefaultResult: aws.String(h.DefaultResult),
		NotificationMetadata: stringOrNil(h.NotificationMetadata),
	})
	return asError("autoscaling", "PutLifecycleHook", err)
}

// deleteHook takes a refusal for done where the hook is not there: AWS has no code
// of its own for that.
func (c *Cloud) deleteHook(ctx context.Context, a step.DeleteHook) error {
	c.hooks.drop(a.Group)
	_, err := c.autoscaling.DeleteLifecycleHook(ctx, &autoscaling.DeleteLifecycleHookInput{
		AutoScalingGroupName: aws.String(a.Group), LifecycleHookName: aws.String(a.Name),
	})
	e := classify("autoscaling", "DeleteLifecycleHook", err)
	if e == nil {
		return nil
	}
	if e.Kind == observed.NotFound || e.Kind == observed.Invalid {
		left, err := c.groupHooks(ctx, a.Group)
		if err == nil && !slices.ContainsFunc(left, func(h intent.LifecycleHook) bool { return h.Name == a.Name }) {
			return nil
		}
	}
	return e
}
