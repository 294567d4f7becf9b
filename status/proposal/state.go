package proposal

import "time"

// Phase describes how far a proposal is.
type Phase string

// Phases. An open pull request is in Open or Theirs. In all other phases the proposal has no open
// pull request, and the kind decides whether there may be another one.
const (
	Wanted   Phase = ""         // nothing was opened yet
	Asked    Phase = "wanted"   // somebody asked for it, and nothing was opened yet
	Open     Phase = "open"     // the pull request is open
	Theirs   Phase = "theirs"   // it is open, and somebody else has pushed to its branch
	Merged   Phase = "merged"   // it was merged
	Closed   Phase = "closed"   // somebody closed it
	Obsolete Phase = "obsolete" // nobody needs it: weir closed it, or never opened it
	ByHand   Phase = "by-hand"  // weir cannot propose it
)

// State is the part of one proposal that Machine stores. The entry of each kind embeds it, and adds
// what the proposal is about. Members of different versions share these records: a field keeps its
// name and its meaning, and losing a field that an older version does not know must do no harm.
type State struct {
	Phase Phase `json:"phase,omitempty"`
	// Number and URL belong to the pull request. Title is the title that weir gave it.
	Number int64  `json:"number,omitempty"`
	URL    string `json:"url,omitempty"`
	Title  string `json:"title,omitempty"`
	// Branch points to Commit, which weir pushed, on top of On. It pointed to Before until then,
	// and a forge may show Before a moment longer. Paths lists the files that Commit changes.
	Branch string   `json:"branch,omitempty"`
	Commit string   `json:"commit,omitempty"`
	Before string   `json:"before,omitempty"`
	On     string   `json:"on,omitempty"`
	Paths  []string `json:"paths,omitempty"`
	// Made holds the commits that weir may have pushed to Branch, each with the print of the draft
	// it was made for. A commit is noted here before it is pushed.
	Made map[string]string `json:"made,omitempty"`
	// Foreign is a commit of somebody else on Branch.
	Foreign string `json:"foreign,omitempty"`
	// Print identifies what the branch and the text of the pull request say. Said is the commit
	// that the text describes.
	Print string `json:"print,omitempty"`
	Said  string `json:"said,omitempty"`
	// Changed is the time when weir last opened or changed the pull request, or when it ended.
	Changed time.Time `json:"changed,omitzero"`
	// Closing is the reason why weir closes the pull request. It is noted before the request is
	// sent, because a closed pull request without a reason was closed by somebody else.
	Closing string `json:"closing,omitempty"`
	// Merge is the commit that merging the pull request made. Last is the number of the pull
	// request before, if the kind opens another one.
	Merge string `json:"merge,omitempty"`
	Last  int64  `json:"last,omitempty"`
	// Text is the last report of weir. Refused says that the forge does not let weir continue.
	Text    string `json:"text,omitempty"`
	Refused bool   `json:"refused,omitempty"`
	// After is the time of the next try after an error, Tries the number of failed ones.
	Tries int       `json:"tries,omitempty"`
	After time.Time `json:"after,omitzero"`

	// drop says that the entry has ended and is not kept.
	drop bool
}

// IsOpen reports whether the proposal has an open pull request.
func (s *State) IsOpen() bool { return s.Phase == Open || s.Phase == Theirs }

// fresh reports whether no pull request of the proposal was seen yet.
func (s *State) fresh() bool { return s.Phase == Wanted || s.Phase == Asked }

// noted reports whether weir noted that it made a commit.
func (s *State) noted(commit string) bool {
	_, made := s.Made[commit]
	return made || commit == s.Commit || commit == s.Before
}

func (s *State) state() *State { return s }
