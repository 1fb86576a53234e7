# What an integrator's shell does with a lab: sh -eu smoke.sh LAB DIR
lab=$1 dir=$2
say() { echo "smoke: $*" >&2; exit 1; }

# await FILE PATTERN: until a line of the file matches.
await() {
	for _ in $(seq 300); do
		grep -q "$2" "$1" 2>/dev/null && return
		sleep 0.1
	done
	say "no $2 in $1"
}

cd / # from any directory
url=$("$lab" up "$dir" 2)
[ "$url" = "$(cat "$dir/ledger.url")" ] || say "up printed $url"
for f in keys/admin keys/box-office keys/admin-sign gate-1/log gate-2/log; do
	[ -s "$dir/$f" ] || say "$f is missing or empty"
done
for k in 1 2; do
	[ -p "$dir/gate-$k/line" ] || say "gate-$k/line is no FIFO"
done

[ "$("$lab" mint "$dir" 3 | sort -u | wc -l)" = 3 ] || say "mint 3 does not print three tickets"
ticket=$("$lab" mint "$dir" 1)
echo "$ticket" >"$dir/gate-1/line"
await "$dir/gate-1/verdicts.jsonl" '"verdict":"admit","reason":"ok"'
await "$dir/gate-1/results.jsonl" '"result":"admitted"'
await "$dir/gate-1/turnstile.jsonl" '"line":"relay","active":true'
echo "$ticket" >"$dir/gate-2/line"
await "$dir/gate-2/verdicts.jsonl" '"reason":"already_used".*"first_gate":"1"'

"$lab" passage "$dir" 1 never
"$lab" passage "$dir" 1 auto
"$lab" mode "$dir" 1 closed
"$lab" mint "$dir" 1 >"$dir/gate-1/line"
await "$dir/gate-1/verdicts.jsonl" '"reason":"closed"'
"$lab" mode "$dir" 1 normal
for how in decline fail slow late lose approve; do
	"$lab" acquirer "$dir" "$how"
done
! "$lab" acquirer "$dir" explode 2>/dev/null || say "an acquirer cannot explode"
"$lab" clock "$dir" 2 -90m
"$lab" clock "$dir" 2 0s
for k in 1 ledger broker; do
	"$lab" cut "$dir" "$k"
	"$lab" heal "$dir" "$k"
	"$lab" cut "$dir" "$k" hang
	"$lab" heal "$dir" "$k"
	"$lab" kill "$dir" "$k"
	"$lab" start "$dir" "$k"
done
"$lab" mint "$dir" 1 >"$dir/gate-2/line"
await "$dir/gate-2/verdicts.jsonl" '"reason":"ok"'

! "$lab" kill "$dir" 7 2>/dev/null || say "there is no gate 7"
! "$lab" up "$dir" 2>/dev/null || say "a second lab in one directory"
"$lab" down "$dir"
! "$lab" down "$dir" 2>/dev/null || say "down twice"
