package observed

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// Tag keys that weir puts on what it owns. They stand on templates, groups and
// nodegroups themselves, never in a template's body nor on instances.
const (
	TagOwner  = "weir.dev/owner"
	TagTarget = "weir.dev/target"
	TagSource = "weir.dev/source"
	TagPool   = "weir.dev/pool"
	// TagLaunchConfig replaces TagPool on a template that pools share: the
	// AWSLaunchConfig's namespace and name.
	TagLaunchConfig = "weir.dev/launch-config"
	// TagPrune is "disabled" on what must not be deleted when Git drops it.
	TagPrune = "weir.dev/prune"
	// TagKeep is the number of earlier versions that a template keeps, if that is not
	// DefaultKeepVersions, as the last pruning used it.
	TagKeep = "weir.dev/keep-versions"
	// TagKeys says which keys of the resource weir has put there for Git, in the
	// form of keyMarks: a tag that Git drops is removed, and another's tag stays,
	// without a record of what was applied.
	TagKeys = "weir.dev/tags"
	// TagCluster names the EKS cluster on the template of a nodegroup, so that
	// the nodegroup is looked for even when Git names the cluster no more.
	TagCluster = "weir.dev/cluster"

	TagCAPARole      = "sigs.k8s.io/cluster-api-provider-aws/role"
	TagNodegroup     = "eks:nodegroup-name"
	TagClusterPrefix = "sigs.k8s.io/cluster-api-provider-aws/cluster/"
)

func WithTags(base map[string]string, more ...map[string]string) map[string]string {
	out := maps.Clone(base)
	if out == nil {
		out = map[string]string{}
	}
	for _, m := range more {
		maps.Copy(out, m)
	}
	return out
}

// GroupTags are tags of a group that its machines do not get.
func GroupTags(values map[string]string) map[string]GroupTag {
	out := make(map[string]GroupTag, len(values))
	for k, v := range values {
		out[k] = GroupTag{Value: v}
	}
	return out
}

func GroupTagValues(tags map[string]GroupTag) map[string]string {
	out := make(map[string]string, len(tags))
	for k, t := range tags {
		out[k] = t.Value
	}
	return out
}

func Quote(s string) string {
	if s == "" {
		return "(none)"
	}
	return `"` + s + `"`
}

// ShellWord is a name of AWS as one word of a command that people copy into a shell. Names
// of groups may hold any printable character but a colon.
func ShellWord(name string) string {
	if name != "" && !strings.ContainsFunc(name, func(c rune) bool {
		return c > unicode.MaxASCII || !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("_-./@%+=,", c)
	}) {
		return name
	}
	return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
}

// A tag's value holds at most 256 characters, fewer than the keys of fifty tags. So the keys are
// recorded as marks: a character for the length of each mark, then the marks, sorted. A mark is the
// beginning of the key's SHA-256 in the alphabet of base64 URLs; AWS allows all of these characters
// in a tag. Sixteen characters fit for up to fifteen keys, five for fifty: even then the chance
// that a foreign tag matches is below one in twenty million.
const (
	marksLimit  = 256 // characters of a tag's value
	longestMark = 16
	markLengths = "0123456789abcdefg"
)

// KeyMarks records the keys of tags; "0" for none.
func KeyMarks(tags map[string]string) string {
	if len(tags) == 0 {
		return markLengths[:1]
	}
	length := min(longestMark, (marksLimit-1)/len(tags))
	marks := make([][longestMark]byte, 0, len(tags))
	for k := range tags {
		marks = append(marks, keyMark(k))
	}
	slices.SortFunc(marks, func(a, b [longestMark]byte) int { return bytes.Compare(a[:length], b[:length]) })
	out := make([]byte, 1, 1+len(marks)*length)
	out[0] = markLengths[length]
	for i := range marks {
		out = append(out, marks[i][:length]...)
	}
	return string(out)
}

// keyMark stands for a key, as long as the longest mark.
func keyMark(key string) (mark [longestMark]byte) {
	sum := sha256.Sum256([]byte(key))
	base64.RawURLEncoding.Encode(mark[:], sum[:longestMark/4*3])
	return mark
}

// Marked reports whether a record made by keyMarks holds key. A record that was changed
// by hand holds as much as can be read of it.
func Marked(record, key string) bool {
	if record == "" || strings.HasPrefix(key, "aws:") || strings.HasPrefix(key, OwnTagPrefix) {
		return false
	}
	length := strings.IndexByte(markLengths, record[0])
	if length < shortestMark {
		return false
	}
	mark := keyMark(key)
	for rest := record[1:]; len(rest) >= length; rest = rest[length:] {
		if rest[:length] == string(mark[:length]) {
			return true
		}
	}
	return false
}

const (
	// OwnTagPrefix begins the keys of weir's own tags.
	OwnTagPrefix = "weir.dev/"
	// shortestMark is that of fifty keys; a shorter one was not made by weir.
	shortestMark = 5
)

// TagAdopted stands on a group or nodegroup that was taken over, and holds what Git
// wanted of the pool then. Taking over changes only tags; a person decides separately
// about replacing machines. While Git wants the same, each such step is held until
// somebody lets it run. The tag goes right before the first that does, or once a commit
// has changed the pool. It stands in AWS, so that neither a lost state nor a second
// weir begins what no person decided.
const TagAdopted = "weir.dev/adopted"

// TagDelete is "drain" on a group that is scaled to zero before it is deleted: the
// manifest with the annotation is gone by then. Without it a group is deleted with
// its machines, as Cluster API Provider AWS does it: AWS then ends them at once and
// drops their lifecycle actions.
const TagDelete = OwnTagPrefix + "delete"

// TagDrainer describes how weir drains the machines of a group, in the words of intent.Drainer.Text. The
// drainer uses what AWS holds, so weir also drains a group that Git has dropped and that is scaled
// to zero.
const TagDrainer = OwnTagPrefix + "drainer"

const (
	// TagRevision is the commit that a resource's tags were last written from.
	TagRevision = "weir.dev/revision"
	// TagSince is the newest version that a launch template had when it came from
	// another weir or another repository: of the commits in the descriptions of that
	// one and those before it, this repository knows nothing.
	TagSince = "weir.dev/since-version"
)

// TagSuspended names the processes of a group that weir suspended for Git, with spaces between.
// weir resumes a process that Git drops, and leaves a process that somebody else suspended. A
// process that was suspended before Git declared it is somebody else's.
const TagSuspended = OwnTagPrefix + "suspended"
