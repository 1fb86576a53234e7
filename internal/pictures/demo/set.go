package demo

import (
	"admitone/internal/pictures"
	"admitone/internal/ticket"
)

const title = "ADMIT ONE"

// tickets are the pictures of tickets that open a gate, or did before.
func (b *builder) tickets() {
	ticket1, ticket2 := b.mint(Ticket(1)), b.mint(Ticket(2))
	b.add("new-phone", New, ticket.OK, ticket1,
		look{px: 5, tilt: 10, turn: 5, blur: 0.6, noise: 2.5, title: title}, 1)
	b.add("new-paper", New, ticket.OK, ticket2,
		look{on: pictures.Paper, px: 5.6, tilt: 14, turn: -7, blur: 0.6, noise: 2.5, title: title}, 2)
	b.add("new-dark-mode", New, ticket.OK, b.mint(Ticket(3)),
		look{on: pictures.DarkPhone, px: 5, tilt: 8, turn: -4, blur: 0.6, noise: 2.5, title: title}, 1)
	b.add("repeat-phone", Repeat, ticket.AlreadyUsed, ticket1,
		look{px: 4.6, x: 0.08, y: -0.04, tilt: 15, turn: -11, blur: 0.7, noise: 3, title: title}, 1)
	b.add("nothing-hall", Nothing, "", "", look{noise: 3}, 1)
	for i, l := range []look{
		{px: 5, tilt: 8, turn: 3, x: -0.05},
		{px: 4.7, tilt: 12, turn: -6, y: -0.05},
		{on: pictures.Paper, px: 5.6, tilt: 10, turn: 8},
		{px: 4.8, tilt: 14, turn: 12, lamp: 0.15},
	} {
		l.blur, l.noise, l.title = 0.6, 2.5, "FAMILY OF FOUR"
		b.add("family-"+string(rune('1'+i)), Family, ticket.OK, b.mint(Ticket(4+i)), l, 1)
	}
	b.add("new-low-light", New, ticket.OK, b.mint(Ticket(8)),
		look{px: 4.8, tilt: 10, turn: 4, dim: 0.85, blur: 0.6, noise: 4, title: title}, 2)
	b.add("both-gates-phone", BothGates, ticket.OK, b.mint(Ticket(9)),
		look{px: 5, tilt: 12, turn: -3, blur: 0.6, noise: 2.5, title: title}, 1, 2)
	b.add("both-gates-paper", BothGates, ticket.OK, b.mint(Ticket(10)),
		look{on: pictures.Paper, px: 5.6, tilt: 9, turn: 6, blur: 0.6, noise: 2.5, title: title}, 1, 2)
}

// refusals are the pictures that open no gate.
func (b *builder) refusals() {
	b.add("expired-phone", Expired, ticket.Expired, b.mint(expired(101)),
		look{px: 5, tilt: 11, turn: 7, blur: 0.6, noise: 2.5, title: "LAST YEAR"}, 1)
	b.add("expired-paper", Expired, ticket.Expired, b.mint(expired(102)),
		look{on: pictures.Paper, px: 5.6, tilt: 12, turn: -5, blur: 0.6, noise: 2.5, title: "LAST YEAR"}, 2)
	b.add("other-event", Other, ticket.WrongEvent, b.mint(otherEvent(201)),
		look{px: 5, tilt: 13, turn: -9, blur: 0.6, noise: 2.5, title: "ANOTHER EVENING"}, 1)
	b.add("junk-url", Junk, ticket.Invalid, "https://example.org/menu?table=12",
		look{on: pictures.Paper, px: 8, tilt: 15, turn: 10, blur: 0.8, noise: 3, title: "MENU"}, 1)
	b.add("junk-wifi", Junk, ticket.Invalid, "WIFI:T:WPA;S:Foyer;P:correct horse;;",
		look{px: 7, tilt: 10, turn: -12, blur: 0.8, noise: 3, title: "GUEST WIFI"}, 2)
	b.add("junk-vcard", Junk, ticket.Invalid, "BEGIN:VCARD\nVERSION:3.0\nN:Doe;Jo\nTEL:+1-555-0100\nEND:VCARD\n",
		look{on: pictures.DarkPhone, px: 6, tilt: 10, turn: 5, blur: 0.7, noise: 3, title: "JO DOE"}, 1)
	b.add("nothing-phone", Nothing, "", "", look{px: 5, tilt: 12, turn: 8, blur: 0.8, noise: 3, title: "MUSIC"}, 2)
}

// last are the harder pictures, and those that need several before them.
func (b *builder) last() {
	b.twoPhones(b.mint(Ticket(11)), b.mint(Ticket(12)))
	b.add("new-glare", New, ticket.OK, b.mint(Ticket(13)),
		look{px: 5.2, tilt: 9, turn: 4, lamp: 0.45, blur: 0.6, noise: 2.5, title: title}, 1)
	b.add("new-motion", New, ticket.OK, b.mint(Ticket(14)),
		look{px: 5.2, tilt: 8, turn: -6, move: 3, blur: 0.5, noise: 2.5, title: title}, 2)
	b.add("repeat-paper", Repeat, ticket.AlreadyUsed, b.mint(Ticket(2)),
		look{on: pictures.Paper, px: 5.6, tilt: 10, turn: 11, blur: 0.7, noise: 2.5, title: title}, 1)
	b.add("repeat-family", Repeat, ticket.AlreadyUsed, b.mint(Ticket(5)),
		look{px: 5, tilt: 10, turn: -2, blur: 0.6, noise: 2.5, title: "FAMILY OF FOUR"}, 2)
}

func (b *builder) twoPhones(left, right string) {
	l := look{px: 5.2, x: -0.21, tilt: 9, turn: -5, blur: 0.7, noise: 2.5, title: title}
	r := look{px: 5.4, x: 0.2, y: 0.03, tilt: 10, turn: 6, title: title}
	f := Frame{
		File: b.name("two-phones"), Kind: TwoPhones, Gates: []int{1},
		Texts: []string{left, right}, Reasons: []ticket.Reason{ticket.OK, ticket.OK}, Spec: b.spec(l),
	}
	f.Spec.Width, f.Spec.Height = 1280, 720
	f.Spec.Held = []pictures.Held{l.held(b.symbol(left)), r.held(b.symbol(right))}
	b.frames = append(b.frames, f)
}
