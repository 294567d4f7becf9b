package proposal

import "time"

// Phase is the progress of a proposal.
type Phase string

// The phases of a proposal. An open pull request is in Open or Theirs. In all other phases the proposal has
// no open pull request, and the kind decides whether there may be another one.
const (
	Wanted   Phase = ""         // nothing was opened yet
	Asked    Phase = "wanted"   // a user requested it, and nothing was opened yet
	Open     Phase = "open"     // the pull request is open
	Theirs   Phase = "theirs"   // it is open, and somebody else has pushed to its branch
	Merged   Phase = "merged"   // it was merged
	Closed   Phase = "closed"   // somebody closed it
	Obsolete Phase = "obsolete" // no longer needed: weir closed it, or never opened it
	ByHand   Phase = "by-hand"  // weir cannot propose it
)

// State is the part of one proposal that Machine stores. The entry of each kind embeds it, and adds the
// subject of the proposal. Members of different versions share these records. So a field never changes its
// name or meaning, and it must be harmless if an older version drops a field that it does not know.
type State struct {
	Phase Phase `json:"phase,omitempty"`
	// Number and URL belong to the pull request. Title is the title that weir set.
	Number int64  `json:"number,omitempty"`
	URL    string `json:"url,omitempty"`
	Title  string `json:"title,omitempty"`
	// Branch points to Commit, which weir pushed on top of On. Before that, it pointed to Before, and a
	// forge may show Before for a moment longer. Paths lists the files that Commit changes.
	Branch string   `json:"branch,omitempty"`
	Commit string   `json:"commit,omitempty"`
	Before string   `json:"before,omitempty"`
	On     string   `json:"on,omitempty"`
	Paths  []string `json:"paths,omitempty"`
	// Made contains the commits that weir may have pushed to Branch, each with the fingerprint of its
	// draft. A commit is recorded here before it is pushed.
	Made map[string]string `json:"made,omitempty"`
	// Foreign is a commit on Branch that somebody else made.
	Foreign string `json:"foreign,omitempty"`
	// Print is the fingerprint of the content of the branch and the pull request. Said is the commit that
	// the text describes.
	Print string `json:"print,omitempty"`
	Said  string `json:"said,omitempty"`
	// Changed is the time at which weir last opened or changed the pull request, or at which it ended.
	Changed time.Time `json:"changed,omitzero"`
	// Closing is the reason why weir closes the pull request. It is stored before the request is sent,
	// because a closed pull request without a reason was closed by somebody else.
	Closing string `json:"closing,omitempty"`
	// Merge is the merge commit of the pull request. Last is the number of the previous pull request, if
	// the kind opens another one.
	Merge string `json:"merge,omitempty"`
	Last  int64  `json:"last,omitempty"`
	// Text is the last report of weir. Refused says that the forge does not permit weir to continue.
	Text    string `json:"text,omitempty"`
	Refused bool   `json:"refused,omitempty"`
	// After is the time of the next attempt after an error, and Tries the number of failed attempts.
	Tries int       `json:"tries,omitempty"`
	After time.Time `json:"after,omitzero"`

	// drop says that the entry has ended and must be deleted.
	drop bool
}

// IsOpen reports whether the proposal has an open pull request.
func (s *State) IsOpen() bool { return s.Phase == Open || s.Phase == Theirs }

// fresh reports whether no pull request of the proposal was seen yet.
func (s *State) fresh() bool { return s.Phase == Wanted || s.Phase == Asked }

// noted reports whether Made contains a commit.
func (s *State) noted(commit string) bool {
	_, made := s.Made[commit]
	return made || commit == s.Commit || commit == s.Before
}

func (s *State) state() *State { return s }
