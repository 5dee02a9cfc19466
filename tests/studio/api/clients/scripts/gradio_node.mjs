// Gradio's client for Node calls the page's endpoints.
import { Client } from '@gradio/client'

const page = await Client.connect(process.argv[2])
const { data: [file] } = await page.predict('/speak', { text: 'The train leaves at seven.', voice: 'clara' })
const sound = await (await fetch(file.url)).arrayBuffer()
if (sound.byteLength < 20_000) throw new Error(`${sound.byteLength} bytes`)
const { data: [voices] } = await page.predict('/voices', {})
if (!voices.some(({ name }) => name === 'clara')) throw new Error('clara is missing')
process.exit(0)
