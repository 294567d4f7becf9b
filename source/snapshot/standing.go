package snapshot

// Standing says how a commit stands to those that are, or were, followed.
type Standing string

// Standings.
const (
	// Behind: it is a commit that is followed, or such a one descends from it.
	Behind Standing = "behind"
	// Ahead: it descends from the commit that is followed.
	Ahead Standing = "ahead"
	// Aside: it is here, and neither of the two.
	Aside Standing = "aside"
	// Unknown: it is not here.
	Unknown Standing = "unknown"
)
