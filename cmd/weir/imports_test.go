package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/weir-gitops/weir/"

// importRule limits what some packages import. Packages are named below the
// module; a name that ends in /... stands for everything below it too.
type importRule struct {
	// of are the packages that the rule is about; empty: all but except.
	of, except []string
	// only lists weir's own packages that may be imported; nil for any.
	only []string
	// std says that beside those only the standard library and what also names
	// may be imported.
	std  bool
	also []string
	// never lists import paths, or prefixes of them, that may not be imported.
	never  []string
	reason string
}

var importRules = []importRule{
	{of: []string{"render/diag", "render/gctuning", "render/lazyregexp", "render/nearest", "render/tree", "render/visible"}, only: []string{}, std: true, reason: "everyone may import them, so they import nobody"},
	{of: []string{"render/slot"}, only: []string{}, std: true, reason: "callers share slots, whatever they do in them"},
	{of: []string{"render/values"}, only: []string{}, std: true, also: []string{"go.yaml.in/yaml"}, reason: "the configuration and renders read values alike"},
	{of: []string{"render/secret"}, only: []string{"render/visible"}, std: true, reason: "everyone may import it, so it imports nobody else"},
	{of: []string{"render/intent"}, only: []string{"render/diag"}, std: true, reason: "the words of the domain stand by themselves"},
	{of: []string{"render/field"}, only: []string{"render/intent"}, std: true, reason: "a row says what is true of a field, whoever asks"},
	{of: []string{"render/manifest/kinds"}, never: []string{module + "render/manifest/rules", module + "render/manifest/derive"}, reason: "an object is decoded whatever is then made of it"},
	{of: []string{"render/manifest/rules"}, never: []string{module + "render/manifest/derive"}, reason: "a rule holds for what is written"},
	{of: []string{"reconciler/content"}, only: []string{"render/intent", "render/visible"}, std: true, reason: "a hash depends on nothing but what is hashed"},
	{of: []string{"reconciler/observed"}, only: []string{"reconciler/content", "render/intent", "render/diag"}, std: true, reason: "what AWS says is a value, whoever reads it"},
	{of: []string{"reconciler/step"}, only: []string{"reconciler/content", "reconciler/observed", "render/intent", "render/diag"}, std: true, reason: "what planning, executing and telling share is a value"},
	{of: []string{"reconciler/rollout"}, only: []string{"render/intent"}, std: true, never: []string{"context", "log/slog", "log", "os", "net"}, reason: "what may be rolled is a pure function of values, whoever reports and whoever heeds it"},
	{of: []string{"reconciler/rollout/gate"}, only: []string{"reconciler/rollout", "render/intent"}, std: true, reason: "a gate is judged by values, and asks through its own interface"},
	{of: []string{"reconciler/rollout/prometheus"}, only: []string{"reconciler/rollout/gate"}, std: true, also: []string{"github.com/prometheus"}, reason: "who answers queries knows no rollout"},
	{of: []string{"reconciler/rollout/ledger"}, only: []string{"reconciler/rollout", "reconciler/state"}, std: true, reason: "a record is kept, whoever decided it"},
	{of: []string{"reconciler/refusals"}, only: []string{"reconciler/content", "reconciler/observed", "reconciler/step", "render/intent"}, std: true, never: []string{"context", "log/slog", "log", "os", "net"}, reason: "what is not tried again is a record, wherever it is stored"},
	{of: []string{"reconciler/plan/..."}, only: []string{"reconciler/plan/...", "reconciler/refusals", "reconciler/rollout", "reconciler/content", "reconciler/observed", "reconciler/step", "render/field", "render/intent", "render/diag", "render/visible"}, std: true, also: []string{"go.yaml.in/yaml"}, never: []string{"context", "log/slog", "log", "os", "net"}, reason: "planning is pure; user data that AWS holds is told apart as text"},
	{of: []string{"reconciler/awsemu/..."}, only: []string{"reconciler/awsemu/..."}, std: true, also: []string{"github.com/fxamacker/cbor"}, reason: "it imitates AWS, not our idea of AWS"},
	{of: []string{"reconciler/awsemu/model", "reconciler/awsemu/world"}, only: []string{}, std: true, also: []string{"github.com/fxamacker/cbor"}, reason: "AWS's models and what services share know no service"},
	{of: []string{"reconciler/awsemu/wire"}, only: []string{"reconciler/awsemu/model", "reconciler/awsemu/world"}, std: true, reason: "the protocols know no service"},
	{of: []string{"reconciler/awsemu/iam", "reconciler/awsemu/kms", "reconciler/awsemu/elb", "reconciler/awsemu/quotas", "reconciler/awsemu/cloudwatch"}, only: []string{"reconciler/awsemu/wire", "reconciler/awsemu/world"}, std: true, reason: "a service knows those that it asks, and never the front"},
	{of: []string{"reconciler/awsemu/dynamodb/..."}, only: []string{"reconciler/awsemu/dynamodb/...", "reconciler/awsemu/wire", "reconciler/awsemu/world"}, std: true, reason: "a service knows those that it asks, and never the front"},
	{of: []string{"reconciler/awsemu/dynamodb/attr"}, only: []string{"reconciler/awsemu/wire"}, std: true, reason: "a value knows no item's table and no expression"},
	{of: []string{"reconciler/awsemu/dynamodb/expression"}, only: []string{"reconciler/awsemu/dynamodb/attr"}, std: true, reason: "an expression runs on an item, wherever it is"},
	{of: []string{"reconciler/awsemu/ssm", "reconciler/awsemu/sts"}, only: []string{"reconciler/awsemu/iam", "reconciler/awsemu/kms", "reconciler/awsemu/wire", "reconciler/awsemu/world"}, std: true, reason: "a service knows those that it asks, and never the front"},
	{of: []string{"reconciler/awsemu/ec2"}, only: []string{"reconciler/awsemu/iam", "reconciler/awsemu/kms", "reconciler/awsemu/model", "reconciler/awsemu/ssm", "reconciler/awsemu/wire", "reconciler/awsemu/world"}, std: true, reason: "EC2 knows nobody who launches its instances"},
	{of: []string{"reconciler/awsemu/asg/policy", "reconciler/awsemu/asg/schedule"}, only: []string{"reconciler/awsemu/model", "reconciler/awsemu/wire", "reconciler/awsemu/world"}, std: true, reason: "what moves a group knows no group"},
	{of: []string{"reconciler/awsemu/asg"}, only: []string{"reconciler/awsemu/asg/policy", "reconciler/awsemu/asg/schedule", "reconciler/awsemu/cloudwatch", "reconciler/awsemu/ec2", "reconciler/awsemu/model", "reconciler/awsemu/wire", "reconciler/awsemu/world"}, std: true, reason: "Auto Scaling knows no nodegroups"},
	{of: []string{"render/..."}, never: []string{module + "source", module + "reconciler", module + "status", module + "cmd", "net/http"}, reason: "rendering is offline and knows neither Git nor AWS"},
	{of: []string{"source/signature", "source/githubapp"}, only: []string{}, reason: "who may sign and which token opens a repository are questions of their own"},
	{of: []string{"status/forge"}, only: []string{"status/forge/forgehttp", "render/diag"}, reason: "what forges say is a hint, and whoever takes it knows what to do"},
	{of: []string{"source/fault"}, only: []string{}, reason: "every room of source says alike why it has nothing"},
	{of: []string{"source/git"}, only: []string{"render/tree", "source/fault"}, never: []string{"net", "net/http"}, reason: "objects are on this machine, wherever they came from"},
	{of: []string{"source/transport"}, only: []string{"source/fault"}, reason: "a server gives refs and packs, whatever is in them"},
	{of: []string{"source/worktree"}, only: []string{"render/tree", "source", "source/git", "source/fault"}, reason: "what is not committed is read without a server"},
	{of: []string{"source"}, only: []string{"render/tree", "source/fault", "source/git", "source/signature", "source/snapshot", "source/transport"}, reason: "a source gives trees and knows nothing of what is in them"},
	{of: []string{"reconciler"}, only: []string{"reconciler/content", "reconciler/precondition", "reconciler/imageupdates", "reconciler/observed", "reconciler/plan/...", "reconciler/refusals", "reconciler/rollout", "reconciler/step", "reconciler/preflight", "reconciler/resolve", "reconciler/span", "reconciler/disruption", "reconciler/drain", "reconciler/jointoken", "reconciler/workload", "render/intent", "render/diag"}, reason: "the loop knows neither Git, YAML, the SDK nor a forge"},
	{of: []string{"reconciler/disruption"}, only: []string{"reconciler/plan", "reconciler/plan/model", "reconciler/step", "reconciler/workload", "render/intent", "render/diag"}, std: true, also: []string{"golang.org/x/sync"}, reason: "what rollouts mean for pods is judged by answers, whoever asks for them"},
	{of: []string{"reconciler/jointoken"}, only: []string{"reconciler/workload", "render/diag", "render/secret"}, std: true, reason: "tokens are kept through its own interfaces"},
	{of: []string{"reconciler/drain"}, only: []string{"reconciler/workload"}, std: true, also: []string{"golang.org/x/sync"}, reason: "machines are drained through its own interfaces, whoever wants it"},
	{of: []string{"reconciler/workload"}, only: []string{}, std: true, also: []string{"k8s.io", "github.com/go-logr/logr"}, reason: "a client of Kubernetes knows nothing of pools"},
	{except: []string{"reconciler/workload"}, never: []string{"k8s.io/client-go", "k8s.io/api"}, reason: "one package speaks to workload clusters, with the core API's types alone"},
	{never: []string{"k8s.io/client-go/kubernetes", "k8s.io/client-go/plugin"}, reason: "the typed clients register every API group, and plugins run programs"},
	{of: []string{"reconciler/resolve"}, only: []string{"reconciler/content", "reconciler/observed", "reconciler/plan/...", "reconciler/step", "render/intent", "render/diag"}, reason: "it asks through its own interface"},
	{of: []string{"reconciler/preflight"}, only: []string{"reconciler/content", "reconciler/observed", "reconciler/plan/...", "reconciler/step", "render/field", "render/intent", "render/diag"}, std: true, reason: "what AWS would refuse is judged by answers, whoever asks for them"},
	{of: []string{"reconciler/awscloud/..."}, only: []string{"reconciler/awscloud/...", "reconciler/partition", "reconciler/jointoken", "reconciler/content", "reconciler/precondition", "reconciler/observed", "reconciler/plan/...", "reconciler/rollout", "reconciler/preflight", "reconciler/step", "reconciler/resolve", "render/field", "render/intent", "render/diag", "render/nearest"}, reason: "the adapter knows what it adapts to"},
	{of: []string{"reconciler/awscloud/observe", "reconciler/awscloud/fill", "reconciler/awscloud/memory", "reconciler/awscloud/xmlscan"}, never: []string{"github.com/aws/"}, reason: "what is read, when and for how long is decided without the SDK, which compiles slowly"},
	{of: []string{"reconciler/simulate"}, only: []string{"reconciler", "reconciler/awscloud", "reconciler/awscloud/sdk", "reconciler/awsemu", "reconciler/awsemu/...", "reconciler/clock", "reconciler/gates", "reconciler/gates/calendar", "reconciler/observed", "reconciler/plan", "reconciler/plan/model", "reconciler/resolve", "reconciler/rollout", "reconciler/rollout/gate", "reconciler/simulate/timeline", "reconciler/step", "reconciler/workload", "render/field", "render/intent"}, std: true, reason: "it simulates from values, whoever made them"},
	{of: []string{"reconciler/simulate/timeline"}, only: []string{}, std: true, reason: "what happens over time is a value, whoever saw it and whoever shows it"},
	{of: []string{"status/forecast"}, only: []string{"reconciler/simulate/timeline", "status/wording"}, std: true, reason: "a timeline is shown, whoever made it"},
	{of: []string{"reconciler/importer"}, only: []string{"reconciler/importer/factor", "reconciler/content", "reconciler/observed", "reconciler/plan/...", "reconciler/step", "render/field", "render/intent", "render/diag", "render/userdata"}, std: true, also: []string{"go.yaml.in/yaml/v3"}, reason: "manifests are made of what was observed, whoever reads it and writes them"},
	{of: []string{"reconciler/accept"}, only: []string{"reconciler/importer", "reconciler/observed", "reconciler/plan", "reconciler/step", "render/edit", "render/intent"}, std: true, never: []string{"context", "log/slog", "log", "os", "net"}, reason: "what may be kept is a pure function of plans and of what was seen, whoever writes it"},
	{of: []string{"reconciler/importer/factor"}, only: []string{}, std: true, also: []string{"go.yaml.in/yaml/v3"}, reason: "what is shared is found in manifests, whatever they say"},
	{of: []string{"reconciler/importer/terraform"}, only: []string{}, std: true, reason: "a state is Terraform's, whatever is made of it"},
	{of: []string{"reconciler/partition"}, only: []string{}, std: true, reason: "AWS's partitions are a table of facts"},
	{of: []string{"reconciler/precondition"}, only: []string{}, std: true, reason: "who decides on a call and who makes it know each other by a context alone"},
	{of: []string{"reconciler/awscloud/sdk"}, only: []string{"reconciler/awscloud/httpbody", "reconciler/precondition", "reconciler/observed", "reconciler/partition", "reconciler/plan/launch", "render/nearest"}, never: []string{"github.com/aws/aws-sdk-go-v2/service/ec2", "github.com/aws/aws-sdk-go-v2/service/autoscaling", "github.com/aws/aws-sdk-go-v2/service/eks"}, reason: "how calls are made is the same for every service"},
	{of: []string{"reconciler/targetspec"}, only: []string{"reconciler/gates/calendar", "render/diag", "render/tree", "render/values"}, std: true, reason: "what an operator says of targets is for everyone to read"},
	{of: []string{"reconciler/accounts"}, only: []string{"reconciler", "reconciler/awscloud", "reconciler/awscloud/sdk", "reconciler/clock", "reconciler/observed", "reconciler/preflight", "reconciler/resolve", "render/diag", "render/sops"}, std: true, reason: "an account is opened the same way, whatever is wanted of it"},
	{of: []string{"reconciler/fleet"}, only: []string{"reconciler", "reconciler/gates", "reconciler/content", "reconciler/plan/...", "reconciler/rollout", "reconciler/resolve", "reconciler/span", "reconciler/step", "reconciler/targetspec", "reconciler/workload", "render", "render/...", "source/snapshot"}, reason: "what Git wants is put together of values, and knows neither Git, AWS nor a forge"},
	{of: []string{"reconciler/gates"}, only: []string{"reconciler", "reconciler/clock", "reconciler/gates/calendar", "reconciler/content", "reconciler/observed", "reconciler/plan/...", "reconciler/rollout", "reconciler/step", "reconciler/state", "render/diag", "render/nearest"}, std: true, reason: "what holds a step is decided without knowing where it was asked for"},
	{of: []string{"reconciler/ancestry"}, only: []string{"reconciler/content", "reconciler/observed", "reconciler/plan/...", "reconciler/step", "reconciler/state", "source/snapshot"}, std: true, reason: "how commits stand is asked through its own interface"},
	{of: []string{"reconciler/state"}, only: []string{"reconciler/coord", "reconciler/state/files"}, std: true, also: []string{"go.etcd.io/bbolt", "golang.org/x/sys"}, reason: "a record does not know what is recorded"},
	{of: []string{"reconciler/coord"}, only: []string{}, std: true, also: []string{"golang.org/x/sys"}, reason: "members and leases are the same over every engine, and know nothing of what they are for"},
	{of: []string{"reconciler/coord/dynamo"}, only: []string{"reconciler/coord", "reconciler/awscloud/httpbody", "reconciler/partition"}, std: true, also: []string{"github.com/aws/aws-sdk-go-v2", "github.com/aws/smithy-go"}, reason: "a back end knows the port, and its engine"},
	{of: []string{"reconciler/coord/etcd"}, only: []string{"reconciler/coord"}, std: true, also: []string{"go.etcd.io/etcd", "go.uber.org/zap"}, reason: "a back end knows the port, and its engine"},
	{never: []string{"go.etcd.io/etcd/client/v3/concurrency"}, reason: "its sessions tell late that a lease has ended, so nothing may go by them"},
	{except: []string{"reconciler/coord/etcd", "cmd/weir/internal/demo"}, never: []string{"go.etcd.io/etcd"}, reason: "what an engine is stays behind the port"},
	{of: []string{"reconciler/state/renders", "render/pack"}, only: []string{}, std: true, reason: "bytes are kept, whatever they are of"},
	{of: []string{"reconciler/state/keys"}, only: []string{"reconciler/state"}, std: true, reason: "a key is kept without knowing what encrypts it"},
	{of: []string{"reconciler/state/files", "reconciler/clock", "reconciler/gates/calendar"}, only: []string{}, std: true, reason: "files, the time and windows are the same for whoever asks"},
	{of: []string{"render/strict"}, only: []string{"render/diag", "render/intent", "render/nearest"}, std: true, also: []string{"go.yaml.in/yaml/v3"}, reason: "YAML is read in one way, whatever it is about"},
	{of: []string{"render/edit"}, only: []string{"render", "render/diag", "render/intent", "render/kust", "render/slot", "render/tree"}, std: true, also: []string{"go.yaml.in/yaml/v3", "sigs.k8s.io/kustomize/api/konfig"}, reason: "what is written anew is proven by rendering, whoever wants it"},
	{of: []string{"reconciler/iampolicy"}, only: []string{"reconciler/partition", "render/intent"}, std: true, reason: "a policy names calls and resources, whoever makes the calls"},
	{of: []string{"status/forge/forgehttp"}, only: []string{"render/visible"}, std: true, reason: "how a forge is reached is the same for reading and for writing, whatever is said"},
	{of: []string{"status/browsertest"}, only: []string{}, std: true, also: []string{"github.com/chromedp"}, reason: "a browser shows whatever page a test has"},
	{of: []string{"status/wording"}, only: []string{"reconciler/content", "reconciler/observed", "reconciler/plan/...", "reconciler/rollout", "reconciler/step", "render/diag", "render/visible"}, std: true, reason: "words are the same wherever they are shown"},
	{of: []string{"status/terminal"}, only: []string{"reconciler/observed", "reconciler/plan/...", "reconciler/rollout", "reconciler/step", "render/diag", "render", "render/intent", "render/kust", "render/visible", "status/events", "status/history", "status/instances", "status/members", "status/report", "status/wording"}, std: true, also: []string{"go.yaml.in/yaml"}, reason: "what is printed was found by others"},
	{of: []string{"status/instances"}, only: []string{"reconciler/observed", "reconciler/plan", "status/current"}, std: true, reason: "an instance is described by values; reading AWS is the caller's"},
	{of: []string{"status/members"}, only: []string{"reconciler/coord", "status/events"}, std: true, reason: "who owns what is read from the engine and changes nothing"},
	{of: []string{"cmd/weir/internal/membership"}, only: []string{"reconciler/coord", "reconciler/state"}, std: true, reason: "a member publishes what it is given, and knows neither AWS nor Git"},
	{of: []string{"cmd/weir/internal/propose"}, only: []string{"reconciler", "reconciler/accept", "reconciler/fleet", "reconciler/gates", "reconciler/imageupdates", "reconciler/observed", "reconciler/plan", "reconciler/rollout", "render/diag", "render/edit", "render/intent", "render/manifest/kinds", "render/tree", "source", "source/snapshot", "status/proposal/...", "status/pulls"}, std: true, reason: "what proposals ask of the fleet needs nothing of the daemon"},
	{of: []string{"status/commands"}, only: []string{"reconciler/accept", "reconciler/gates", "reconciler/content", "reconciler/observed", "reconciler/plan/...", "reconciler/rollout", "reconciler/step", "render/intent", "render/nearest", "source/upload", "status/waves"}, std: true, reason: "what a command means is known elsewhere"},
	{of: []string{"status/waves"}, only: []string{"reconciler/plan", "reconciler/plan/model", "reconciler/rollout", "reconciler/step", "render/intent", "render/nearest", "status/wording"}, std: true, reason: "how a rollout stands follows from its record and from reports, wherever it is shown"},
	{of: []string{"status/pulls"}, only: []string{"reconciler", "reconciler/fleet", "reconciler/gates", "reconciler/content", "reconciler/observed", "reconciler/plan/...", "reconciler/simulate", "reconciler/step", "reconciler/state", "render/diag", "render/slot", "render/tree", "source", "source/snapshot", "status/events", "status/report", "status/forge", "status/forge/forgehttp", "status/wording"}, reason: "pull requests are planned through what composes and plans, and knows no configuration"},
	{of: []string{"status/history"}, only: []string{"reconciler/plan/...", "reconciler/step", "reconciler/state", "status/events", "status/events/kinds", "status/report"}, std: true, reason: "history is values, and a log of them"},
	{of: []string{"source/snapshot"}, only: []string{"render/tree"}, std: true, reason: "a commit is a value, and who takes it knows no Git"},
	{of: []string{"source/upload"}, only: []string{"source/git", "render/tree"}, std: true, reason: "a work tree is sent as it is, whatever is in it"},
	{of: []string{"render/redact"}, only: []string{"render/secret"}, std: true, reason: "every sink passes its texts through it, so it knows none"},
	{of: []string{"status/report"}, only: []string{"reconciler/observed", "reconciler/plan/...", "reconciler/rollout", "reconciler/simulate/timeline", "reconciler/step", "render/intent", "render/diag", "render/visible", "status/wording"}, std: true, reason: "what a report says is the same wherever it is shown"},
	{of: []string{"status/events/kinds"}, only: []string{"reconciler/step"}, std: true, reason: "the configuration names kinds of events, and needs nothing that makes them"},
	{of: []string{"status/events"}, only: []string{"reconciler/observed", "reconciler/plan/...", "reconciler/rollout", "reconciler/step", "render/intent", "render/diag", "render/visible", "status/events/kinds", "status/report", "status/wording"}, std: true, reason: "what is new follows from two values"},
	{of: []string{"status/live"}, only: []string{}, std: true, reason: "whatever changes, a page is told of it alike"},
	{of: []string{"status/current"}, only: []string{"status/forge", "reconciler/plan/...", "reconciler/rollout", "status/events", "status/events/kinds", "status/history", "status/live", "status/report", "status/wording"}, std: true, reason: "the current state knows nothing of the page; forge gives it links"},
	{of: []string{"status/page"}, only: []string{"status/forge", "reconciler/plan/...", "reconciler/rollout", "reconciler/simulate/timeline", "reconciler/step", "render/intent", "render/diag", "render/visible", "status/current", "status/events", "status/events/kinds", "status/forecast", "status/history", "status/instances", "status/members", "status/report", "status/waves", "status/wording"}, std: true, reason: "a page shows the current state and reads nothing else; forge gives it links"},
	{of: []string{"status/metrics"}, only: []string{"reconciler/observed", "reconciler/plan/...", "reconciler/step", "status/events", "status/events/kinds", "status/forge", "status/members", "status/report"}, std: true, also: []string{"github.com/prometheus/client_golang"}, reason: "what is counted is told to it"},
	{of: []string{"status/outbox"}, only: []string{}, std: true, also: []string{"golang.org/x/time"}, reason: "how tries are made is the same whatever is written"},
	{of: []string{"status/notify"}, only: []string{"status/events", "status/forge/forgehttp", "status/outbox"}, std: true, reason: "receivers get events and nothing else"},
	{of: []string{"status/commits"}, only: []string{"reconciler/observed", "reconciler/plan/...", "reconciler/state", "reconciler/step", "render/visible", "status/forge", "status/forge/forgehttp", "status/outbox", "status/report", "status/wording"}, reason: "a verdict follows from reports, whoever made them"},
	{of: []string{"reconciler/imageupdates"}, only: []string{"reconciler/observed", "render/intent"}, std: true, never: []string{"context", "log/slog", "log", "os", "net"}, reason: "which image is newer is a pure function of values"},
	{of: []string{"status/proposal"}, only: []string{"reconciler/state", "render/visible", "source", "source/fault", "source/snapshot", "source/transport", "status/events", "status/forge", "status/forge/forgehttp", "status/wording"}, std: true, reason: "the machine for proposals knows none of their kinds"},
	{of: []string{"status/proposal/images"}, only: []string{"reconciler/imageupdates", "reconciler/observed", "render/visible", "source", "source/snapshot", "source/transport", "status/events", "status/proposal", "status/wording"}, reason: "what is proposed of images goes by values and a forge, and reads AWS and writes files through its own interface"},
	{of: []string{"status/proposal/accepts"}, only: []string{"reconciler/accept", "reconciler/gates", "reconciler/state", "source", "source/snapshot", "source/transport", "status/events", "status/proposal", "status/wording"}, reason: "what is proposed to be kept goes by values and a forge, and reads AWS and writes files through its own interface"},
	{of: []string{"status/proposal/reverts"}, only: []string{"reconciler/rollout", "render/visible", "source", "source/snapshot", "source/transport", "status/events", "status/forge", "status/proposal", "status/wording"}, reason: "what is proposed to be reverted goes by records, trees and a forge, and renders through its own interface"},
	{of: []string{"status/comments"}, only: []string{"reconciler/plan/...", "reconciler/state", "reconciler/step", "render/diag", "render/visible", "status/commits", "status/forecast", "status/forge", "status/forge/forgehttp", "status/outbox", "status/report", "status/wording"}, reason: "a comment says what it is given"},
	{of: []string{"status/access"}, only: []string{"status/live", "status/page", "reconciler/state/files"}, reason: "who may do what is decided without knowing what it is"},
	{except: []string{"reconciler/awscloud/...", "reconciler/cloudtest", "reconciler/coord/dynamo"}, never: []string{"github.com/aws/"}, reason: "SDK types do not leak past the adapter; a table in which daemons meet is an engine, and no account that is reconciled"},
	{except: []string{"reconciler/coord/dynamo"}, never: []string{"github.com/aws/aws-sdk-go-v2/service/dynamodb"}, reason: "what an engine is stays behind the port"},
	{except: []string{"source/..."}, never: []string{"github.com/go-git/"}, reason: "only source knows Git"},
	{except: []string{"status/forge"}, never: []string{"github.com/google/go-github", "code.gitea.io/sdk", "gitlab.com"}, reason: "only status/forge speaks to forges"},
	{except: []string{"cmd/weir/internal/telemetry"}, never: []string{"go.opentelemetry.io/otel/sdk", "go.opentelemetry.io/otel/exporters"}, reason: "work is marked everywhere, and where the marks go is one package's business"},
	{never: []string{"google.golang.org/grpc"}, reason: "weir speaks gRPC with etcd alone, whose client does it; OpenTelemetry's exporter links it for its types"},
	{except: []string{"render/...", "deploy/bench/krusty"}, never: []string{"sigs.k8s.io/kustomize"}, reason: "only render builds overlays, and a benchmark compares with kustomize itself"},
	{except: []string{"cmd/...", "status/..."}, never: []string{module + "status", module + "cmd/"}, reason: "the command alone wires the stages together"},
	{except: []string{"cmd/...", "source/...", "reconciler/fleet", "reconciler/ancestry", "status/commands", "status/proposal/...", "status/pulls"}, never: []string{module + "source"}, reason: "the command alone wires the stages together"},
	{except: []string{"cmd/...", "reconciler/..."}, never: []string{module + "reconciler/awscloud", module + "reconciler/awsemu"}, reason: "the command alone chooses an AWS"},
	{never: []string{module + "source/sourcetest", module + "reconciler/cloudtest", module + "reconciler/workload/workloadtest", module + "reconciler/iampolicy/policytest", module + "render/sops/sopstest", module + "render/tree/treetest", module + "cmd/weir/internal/giteatest", module + "status/browsertest", module + "status/statustest", module + "status/proposal/proposaltest", module + "reconciler/fleet/fleettest", module + "reconciler/coord/coordtest", module + "reconciler/state/statetest", "testing"}, except: []string{"reconciler/coord/coordtest", "reconciler/state/statetest", "reconciler/fleet/fleettest", "source/sourcetest", "reconciler/cloudtest", "reconciler/workload/workloadtest", "reconciler/iampolicy/policytest", "render/sops/sopstest", "render/tree/treetest", "cmd/weir/internal/giteatest", "status/browsertest", "status/statustest", "status/proposal/proposaltest"}, reason: "what is for tests stays in tests"},
}

func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		if below, ok := strings.CutSuffix(p, "/..."); ok {
			return name == below || strings.HasPrefix(name, below+"/")
		}
		return name == p
	})
}

func forbidden(never []string, path string) bool {
	return slices.ContainsFunc(never, func(n string) bool {
		return path == strings.TrimSuffix(n, "/") || strings.HasPrefix(path, strings.TrimSuffix(n, "/")+"/")
	})
}

// check returns what is wrong with one import.
func (r importRule) check(name, path string) bool {
	if len(r.of) > 0 && !matches(r.of, name) || matches(r.except, name) {
		return true
	}
	if path == module+"render/lazyregexp" { // regular expressions count as part of Go's library
		path = "regexp"
	}
	if own, ok := strings.CutPrefix(path, module); ok && r.only != nil && !matches(r.only, own) {
		return false
	}
	first, _, _ := strings.Cut(path, "/")
	if r.std && strings.Contains(first, ".") && !strings.HasPrefix(path, module) && !forbidden(r.also, path) {
		return false
	}
	return !forbidden(r.never, path)
}

func TestImports(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath,Imports", "./...")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	checked := 0
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		name, own := strings.CutPrefix(p.ImportPath, module)
		if !own {
			continue
		}
		checked++
		for _, path := range p.Imports {
			for _, r := range importRules {
				if !r.check(name, path) {
					t.Errorf("%s imports %s: %s", name, path, r.reason)
				}
			}
		}
	}
	if checked < 10 {
		t.Errorf("only %d packages were checked", checked)
	}
}

// TestImportRulesBite shows that each rule refuses something.
func TestImportRulesBite(t *testing.T) {
	for _, tc := range []struct{ name, path string }{
		{"render/diag", "sigs.k8s.io/yaml"},
		{"render/intent", module + "render/tree"},
		{"render/field", module + "render/manifest"},
		{"render/strict", module + "render/manifest"},
		{"render/manifest/kinds", module + "render/manifest/rules"},
		{"render/manifest/rules", module + "render/manifest/derive"},
		{"reconciler/plan/model", "context"},
		{"reconciler/awsemu", module + "reconciler/plan"},
		{"reconciler/awsemu/ec2", module + "render/field"},
		{"reconciler/awsemu/asg", module + "render/intent"},
		{"reconciler/awsemu/ec2", module + "reconciler/awsemu/asg"},
		{"reconciler/awsemu/wire", module + "reconciler/awsemu/ec2"},
		{"render/kust", module + "source"},
		{"source", module + "render/intent"},
		{"source/git", "net/http"},
		{"source/transport", module + "source/git"},
		{"reconciler", module + "reconciler/awscloud"},
		{"reconciler/simulate", module + "reconciler/accounts"},
		{"reconciler/simulate/timeline", module + "reconciler/plan"},
		{"status/forecast", module + "reconciler/simulate"},
		{"reconciler/fleet", module + "reconciler/accounts"},
		{"reconciler/awscloud/fill", "github.com/aws/aws-sdk-go-v2/aws"},
		{"reconciler/awscloud/sdk", "github.com/aws/aws-sdk-go-v2/service/ec2"},
		{"reconciler", "github.com/aws/aws-sdk-go-v2/aws"},
		{"cmd/weir", "github.com/go-git/go-git/v5"},
		{"status/commits", "github.com/google/go-github/v84/github"},
		{"cmd/weir/internal/app", "sigs.k8s.io/kustomize/api/krusty"},
		{"reconciler/coord", module + "reconciler/state"},
		{"reconciler/coord", "go.etcd.io/etcd/client/v3"},
		{"reconciler/coord/etcd", "github.com/aws/aws-sdk-go-v2/aws"},
		{"reconciler/awscloud/execute", "github.com/aws/aws-sdk-go-v2/service/dynamodb"},
		{"status/report", module + "reconciler"},
		{"reconciler", "go.opentelemetry.io/otel/sdk/trace"},
		{"source", "testing"},
		{"cmd/weir/internal/app", module + "status/browsertest"},
		{"status/forge", module + "status"},
		{"source", module + "status/forge"},
		{"status/events/kinds", module + "status/events"},
		{"status/page", module + "status/commits"},
		{"status/outbox", module + "status/forge"},
		{"status/forge/forgehttp", module + "render/diag"},
		{"status/current", module + "cmd/weir/internal/config"},
	} {
		if !slices.ContainsFunc(importRules, func(r importRule) bool { return !r.check(tc.name, tc.path) }) {
			t.Errorf("%s may import %s", tc.name, tc.path)
		}
	}
}

// TestEveryRequestIsChecked wants package checked in each test binary in which weir
// can speak to an embedded AWS.
func TestEveryRequestIsChecked(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "list", "-test", "-f", `{{if eq .Name "main"}}{{.ImportPath}} {{join .Deps " "}}{{end}}`, "./...")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	binaries := 0
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		has := func(name string) bool {
			return slices.ContainsFunc(words[1:], func(dep string) bool { return dep == module+name })
		}
		if !strings.HasSuffix(words[0], ".test") || !has("reconciler/awscloud") || !has("reconciler/awsemu") {
			continue
		}
		binaries++
		if !has("reconciler/cloudtest/checked") {
			t.Errorf(`the tests of %s do not import _ %q`, strings.TrimSuffix(words[0], ".test"), module+"reconciler/cloudtest/checked")
		}
	}
	if binaries < 5 {
		t.Errorf("only %d test binaries speak to an embedded AWS", binaries)
	}
}
