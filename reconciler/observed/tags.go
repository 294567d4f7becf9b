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

// The keys of weir's tags on resources that it owns. They are on templates, groups and nodegroups, never in
// a template's data or on instances.
const (
	TagOwner  = "weir.dev/owner"
	TagTarget = "weir.dev/target"
	TagSource = "weir.dev/source"
	TagPool   = "weir.dev/pool"
	// TagLaunchConfig replaces TagPool on a template that pools share. Its value is the namespace and name
	// of the AWSLaunchConfig.
	TagLaunchConfig = "weir.dev/launch-config"
	// TagPrune is "disabled" on resources that must not be deleted when Git no longer has them.
	TagPrune = "weir.dev/prune"
	// TagKeep is the number of earlier versions that the last pruning of a template kept, if it differs from
	// DefaultKeepVersions.
	TagKeep = "weir.dev/keep-versions"
	// TagKeys records which tags of the resource weir set for Git, in the form of KeyMarks. weir removes
	// such a tag if Git no longer has it, and leaves all other tags. No other record is necessary.
	TagKeys = "weir.dev/tags"
	// TagCluster names the EKS cluster on the template of a nodegroup. So weir finds the nodegroup even if
	// Git no longer names the cluster.
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

// GroupTags returns tags of a group that its instances do not get.
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

// ShellWord quotes an AWS name as one word of a shell command for people to copy. Group names may contain
// any printable character except a colon.
func ShellWord(name string) string {
	if name != "" && !strings.ContainsFunc(name, func(c rune) bool {
		return c > unicode.MaxASCII || !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("_-./@%+=,", c)
	}) {
		return name
	}
	return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
}

// The value of a tag has at most 256 characters, which is not enough for the keys of fifty tags. So the keys
// are recorded as marks: one character for the length of each mark, then the marks, sorted. A mark is the
// start of the key's SHA-256 in the base64 URL alphabet, whose characters AWS allows in tags. Up to fifteen
// keys get marks of sixteen characters, fifty keys marks of five. Even then a foreign tag matches with a
// probability below one in twenty million.
const (
	marksLimit  = 256 // characters of a tag's value
	longestMark = 16
	markLengths = "0123456789abcdefg"
)

// KeyMarks returns a record of the keys of tags. It is "0" for no tags.
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

// keyMark returns the longest mark of a key.
func keyMark(key string) (mark [longestMark]byte) {
	sum := sha256.Sum256([]byte(key))
	base64.RawURLEncoding.Encode(mark[:], sum[:longestMark/4*3])
	return mark
}

// Marked reports whether a record from KeyMarks contains key. If a person changed the record, Marked uses
// its readable part.
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
	// OwnTagPrefix is the prefix of weir's own tags.
	OwnTagPrefix = "weir.dev/"
	// shortestMark is the length for fifty keys. weir makes no shorter marks.
	shortestMark = 5
)

// TagAdopted is on an adopted group or nodegroup. Its value identifies the pool in Git at the adoption.
// Adoption changes only tags, and a person decides separately about replacing machines: while Git wants the
// same, each such step is held until a person lets it run. weir removes the tag just before the first such
// step, or after a commit has changed the pool. The tag is in AWS, so that neither a lost state nor a second
// instance starts something that nobody approved.
const TagAdopted = "weir.dev/adopted"

// TagDelete is "drain" on a group that weir scales to zero before it deletes the group, because the manifest
// with the annotation no longer exists then. Without the tag, weir deletes a group together with its
// machines, as Cluster API Provider AWS does. AWS then terminates them at once and skips their lifecycle
// actions.
const TagDelete = OwnTagPrefix + "delete"

// TagDrainer describes how weir drains the machines of a group, in the form of intent.Drainer.Text. The
// drainer reads it from AWS, so weir also drains a group that is scaled to zero because Git no longer has
// it.
const TagDrainer = OwnTagPrefix + "drainer"

const (
	// TagRevision is the commit from which a resource's tags were last written.
	TagRevision = "weir.dev/revision"
	// TagSince is the newest version of a launch template at the time when it came from another instance or
	// another repository. This repository does not know the commits in the descriptions of that version and
	// earlier ones.
	TagSince = "weir.dev/since-version"
)

// TagSuspended lists the processes of a group that weir suspended for Git, separated by spaces. weir resumes
// such a process if Git no longer suspends it, and leaves processes that somebody else suspended, including
// those that were suspended before Git declared them.
const TagSuspended = OwnTagPrefix + "suspended"
